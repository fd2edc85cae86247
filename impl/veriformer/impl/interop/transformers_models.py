"""Models of Hugging Face's transformers become ours, and ours theirs.

Their library is not needed here: a model of theirs is a module with a `config` and a state.
"""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.impl import checks
from veriformer.impl.interop import bert, gpt2, llama, t5
from veriformer.impl.models import Decoder, Encoder, EncoderDecoder

Model = Decoder | Encoder | EncoderDecoder
FAMILIES: dict[str, tuple[ModuleType, type[Model]]] = {
    "gpt2": (gpt2, Decoder),
    "llama": (llama, Decoder),
    "bert": (bert, Encoder),
    "t5": (t5, EncoderDecoder),
}


def from_transformers(source: nn.Module) -> Model:
    """Return our model with the weights of `GPT2LMHeadModel`, `LlamaForCausalLM`, `BertForMaskedLM` or T5's.

    It has the dtype of that, and its mode, training or not. Raises `ValueError` for other families, and for options
    that have no counterpart here.
    """
    theirs: Any = source.config
    family, kind = FAMILIES[checks.choice("model_type", theirs.model_type, FAMILIES)]
    state = source.state_dict()
    repeats = family.shared(family.config(theirs, True))
    heads = [name for name in repeats if name.endswith(("lm_head.weight", "decoder.weight"))]
    c = family.config(theirs, all(state[name].data_ptr() == state[repeats[name]].data_ptr() for name in heads))
    model = kind(c).to(next(source.parameters()).dtype)
    model.load_state_dict({entry.ours: entry.load(state) for entry in family.entries(c)})
    return model.train(source.training)


def transformers_state(model: Model, model_type: str) -> dict[str, Tensor]:
    """Return the state of the model of transformers that computes the same; tensors that it ties are given twice.

    Raises `ValueError` for other families and for a config that has no counterpart there, `TypeError` for another
    type of model.
    """
    family, kind = FAMILIES[checks.choice("model_type", model_type, FAMILIES)]
    if not isinstance(model, kind):
        checks.raise_for(
            "model", f"{kind.__name__}, for {model_type}", type(model).__name__, "choose another type", TypeError
        )
    ours, theirs = model.state_dict(), dict[str, Tensor]()
    described = set()
    for entry in family.entries(model.config):
        described.add(entry.ours)
        if entry.ours not in ours:
            checks.raise_for("model", f"a tensor {entry.ours}, as {model_type} has", "none", "its config differs")
        theirs |= entry.save(ours[entry.ours])
    if set(ours) - described:
        checks.raise_for("model", f"what {model_type} can hold", sorted(set(ours) - described), "its config differs")
    return theirs | {name: theirs[other] for name, other in family.shared(model.config).items()}


@torch.no_grad()
def to_transformers(model: Model, target: nn.Module) -> None:
    """Copy the weights of our model into one of transformers of the same sizes; what that ties stays tied.

    Raises what `transformers_state` raises, and `RuntimeError` where sizes differ.
    """
    theirs: Any = target.config
    target.load_state_dict(transformers_state(model, theirs.model_type))
