"""ALiBi: a bias that falls linearly with distance, at another slope for each head."""

import torch
from torch import Tensor

from veriformer.impl import checks


def alibi_slopes(num_heads: int) -> Tensor:
    r"""Return the slope of each head, after Press, Smith and Lewis.

    $$m_h = 2^{-8h/H}, \quad h = 1 \dots H$$

    where $H$ is a power of two. For other $H$ the slopes of the power of two below, then every other one, from the
    first on, of the power above.

    Shape: `[num_heads]`. Dtype: `torch.get_default_dtype()`, on the CPU. Raises `ValueError` for less than one head,
    `TypeError` for what is no integer. Document 002, section 6.3.
    """
    return _slopes(checks.integer("num_heads", num_heads, minimum=1)).to(torch.get_default_dtype())


def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
    r"""Return the bias that each head adds to the scores of queries and keys.

    $$B_{hij} = -m_h\, |i + n_k - n_q - j|$$

    The last query stands at the last key.

    Shape: `[num_heads, n_q, n_k]`. Dtype: `torch.get_default_dtype()`, on the CPU. Raises `ValueError` for less than
    one head and negative lengths, `TypeError` for what is no integer. Document 002, section 6.3.
    """
    heads = checks.integer("num_heads", num_heads, minimum=1)
    n_q, n_k = (checks.integer(name, n, minimum=0) for name, n in (("n_q", n_q), ("n_k", n_k)))
    i = torch.arange(n_k - n_q, n_k, device="cpu")
    j = torch.arange(n_k, device="cpu")
    distance = (i[:, None] - j).abs()  # [n_q, n_k]
    return (-_slopes(heads)[:, None, None] * distance).to(torch.get_default_dtype())


def _slopes(heads: int) -> Tensor:
    below = 1 << (heads.bit_length() - 1)
    own = [8 * h / below for h in range(1, below + 1)]
    between = [4 * h / below for h in range(1, 2 * (heads - below), 2)]
    return torch.tensor([2.0**-e for e in own + between], dtype=torch.float64, device="cpu")
