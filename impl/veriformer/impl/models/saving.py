"""A model as a file: its weights in safetensors, its config beside them."""

import dataclasses
import json
from pathlib import Path

from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.encoder import Encoder
from veriformer.impl.models.encoder_decoder import EncoderDecoder

Model = Decoder | Encoder | EncoderDecoder
# Files written before these fields had their names of today are read all the same.
_NEW_NAMES = {
    "width": "d_model",
    "hidden": "intermediate_size",
    "norm_order": "norm_placement",
    "checkpointing": "activation_checkpointing",
}
KINDS: dict[str, type[Model]] = {kind.__name__: kind for kind in (Decoder, Encoder, EncoderDecoder)}


def save_model(model: Model, path: str | Path, state: dict[str, Tensor] | None = None) -> None:
    """Write the model to a file. A tied head has no weight of its own, so that it is written once and stays tied.

    `state` stands for the model's own, where that is sharded.
    """
    tensors = {name: x.detach().contiguous() for name, x in (state or model.state_dict()).items()}
    config = json.dumps(dataclasses.asdict(model.config))
    from safetensors.torch import save_file

    save_file(tensors, path, metadata={"kind": type(model).__name__, "config": config})


def load_model(path: str | Path) -> Model:
    """Read a model, in the dtype it was written in.

    Raises `ValueError` for a file that `save_model` did not write.
    """
    config, kind = saved_config(path)
    state = saved_state(path)
    model = KINDS[kind](config).to(next(iter(state.values())).dtype)
    model.load_state_dict(state)
    return model


def saved_config(path: str | Path) -> tuple[ModelConfig, str]:
    """Return the config of a saved model, and its kind."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
    if metadata.get("kind") not in KINDS:
        checks.raise_for("path", "a file written by save_model", str(path), "other weights come in through interop")
    fields = {_NEW_NAMES.get(name, name): value for name, value in json.loads(metadata["config"]).items()}
    if fields["rope_scaling"] is not None:
        fields["rope_scaling"] = tuple(fields["rope_scaling"])
    return ModelConfig(**fields), metadata["kind"]


def saved_state(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a saved model."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - a file is no dict
