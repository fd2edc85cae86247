"""A layout that the documentation of a class states binds how its call is read."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.stated_shapes import stated_layout

BOTH = ("[B,n,d]", "[n,B,d]", "n")


def stating(text: str) -> Candidate:
    class Layer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    Layer.forward.__doc__ = text
    return Candidate("Layer", Layer)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x: [sequence length, batch size, embed dim]", ("[n,B,d]", "n")),
        ("x (Tensor): features of shape (batch, tokens, width)", ("[B,n,d]", "n")),
        ("x: (B, T, C)", ("[B,n,d]", "n")),
        ("Adds positions to embeddings of shape [seq_len, batch_size, d_model].", ("[n,B,d]", "n")),
        ("x: what is encoded (required)", BOTH),
        ("returns x and its positions [n, d]", BOTH),
        ("", BOTH),
    ],
)
def test_a_layout_that_is_stated_leaves_no_other(text: str, left: tuple[str, ...]) -> None:
    assert stated_layout(stating(text), "x", BOTH) == left
