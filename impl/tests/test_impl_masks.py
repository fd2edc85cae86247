"""The causal mask: its edge, its window, and what it refuses."""

import pytest
import torch

from veriformer.impl import causal_mask


@pytest.mark.parametrize("n_q", [0, 1, 2, 5, 7])
@pytest.mark.parametrize("n_k", [0, 1, 4, 5, 8])
@pytest.mark.parametrize("window", [None, 1, 2, 5, 100])
def test_every_entry(n_q, n_k, window):
    mask = causal_mask(n_q, n_k, window=window)
    assert mask.dtype == torch.bool
    assert mask.shape == (n_q, n_k)
    for i in range(n_q):
        position = i + n_k - n_q
        seen = [j for j in range(n_k) if j <= position and (window is None or j > position - window)]
        assert mask[i].nonzero().flatten().tolist() == seen


@pytest.mark.parametrize(
    ("arguments", "window", "error", "name"),
    [
        ((-1, 2), None, ValueError, "n_q"),
        ((2, -1), None, ValueError, "n_k"),
        ((2.0, 2), None, TypeError, "n_q"),
        ((2, None), None, TypeError, "n_k"),
        ((True, 2), None, TypeError, "n_q"),
        ((2, 2), 0, ValueError, "window"),
        ((2, 2), -3, ValueError, "window"),
        ((2, 2), 1.0, TypeError, "window"),
    ],
)
def test_refusals(arguments, window, error, name):
    with pytest.raises(error, match=f"{name}: expected"):
        causal_mask(*arguments, window=window)
