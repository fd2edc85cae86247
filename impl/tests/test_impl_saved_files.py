"""Files that were saved under older names of fields are read as ever."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from veriformer.impl import adam
from veriformer.impl.models import Decoder, ModelConfig
from veriformer.impl.models.saving import load_model, save_model

OLDER = {
    "d_model": "width",
    "intermediate_size": "hidden",
    "norm_placement": "norm_order",
    "activation_checkpointing": "checkpointing",
}


def test_a_model_saved_under_older_names(tmp_path):
    config = ModelConfig(
        vocab_size=7,
        d_model=6,
        num_layers=1,
        num_heads=2,
        intermediate_size=5,
        norm_placement="post",
        activation_checkpointing=True,
    )
    model, new, old = Decoder(config), tmp_path / "new.safetensors", tmp_path / "old.safetensors"
    save_model(model, new)
    with safe_open(new, "pt") as file:
        metadata = file.metadata()
    fields = json.loads(metadata["config"])
    assert set(OLDER) <= set(fields)
    metadata["config"] = json.dumps({OLDER.get(name, name): value for name, value in fields.items()})
    save_file(load_file(new), old, metadata=metadata)
    again = load_model(old)
    assert again.config == config
    assert all(torch.equal(x, again.state_dict()[name]) for name, x in model.state_dict().items())


@pytest.mark.parametrize("older", [False, True])
def test_a_state_of_adam_saved_under_older_names(older):
    def trained(steps, state=None):
        p = torch.tensor([3.0, -2.0], requires_grad=True)
        optimizer = adam([p], 0.1)
        if state is not None:
            optimizer.load_state_dict(state)
        for _ in range(steps):
            p.grad = torch.tensor([1.0, -0.5])
            optimizer.step()
        return optimizer.state_dict()

    saved = trained(3)
    if older:
        saved["state"] = {
            i: {"unseen" if k == "beta_products" else k: x for k, x in s.items()} for i, s in saved["state"].items()
        }
    got, want = trained(2, saved)["state"][0], trained(5)["state"][0]
    assert got["beta_products"] == want["beta_products"]
    assert got["step"] == want["step"] == 5
    assert got.keys() == want.keys()
