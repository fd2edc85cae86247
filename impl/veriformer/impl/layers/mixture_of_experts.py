"""A mixture of experts: each token asks a few of many networks."""

import torch
from torch import Tensor
from torch.nn import functional as F

from veriformer.impl import checks
from veriformer.impl.layers.grouped_gemm import grouped_linear
from veriformer.impl.precision import upcast, upcast_half
from veriformer.impl.shapes import match_shapes


def mixture_of_experts(
    x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int = 2
) -> Tensor:
    r"""Send each token to its `top_k` best experts, and add their answers by their gates.

    $$y = \sum_{e \in T} p_e\, \big(\mathrm{GELU}(x W_1^e + b_1^e)\, W_2^e + b_2^e\big), \quad
      p = \mathrm{softmax}(s_T), \quad s = x R$$

    where $T$ holds the `top_k` highest scores, ties to the lower expert; the gates are normalised over $T$. Every token
    is served: there is no capacity. Scores are formed in float32 for halves, since the choice hangs on them; tokens are
    sorted by expert, and each expert works on its own only. Through the choice itself there is no gradient.

    Shapes: `x [..., d]`, `router [d, E]`, `w1 [E, d, h]`, `b1 [E, h]`, `w2 [E, h, o]`, `b2 [E, o]` → `[..., o]`.
    Dtypes: float64, float32, bfloat16, float16, all the same. Raises `ValueError` for shapes that do not match and
    `top_k` outside [1, E], `TypeError` for wrong or mixed dtypes. Document 003, section 8.
    """
    shapes = {"x": "... d", "router": "d E", "w1": "E d h", "b1": "E h", "w2": "E h o", "b2": "E o"}
    sizes = match_shapes(shapes, x=x, router=router, w1=w1, b1=b1, w2=w2, b2=b2)
    k = checks.integer("top_k", top_k, minimum=1)
    if k > sizes["E"]:
        checks.raise_for("top_k", f"at most the {sizes['E']} experts", k, "ask fewer of them")
    rows = x.reshape(-1, sizes["d"])  # [N, d]
    scores, chosen = _best(upcast(rows) @ upcast(router), k)  # [N, k]
    gates = torch.softmax(scores, -1)
    expert, order = chosen.flatten().sort(stable=True)  # [N k], which expert asks which token next
    counts = expert.new_zeros(sizes["E"]).index_add(0, expert, torch.ones_like(expert))
    asked = upcast_half(rows).index_select(0, order // k)  # [N k, d]
    w1, b1, w2, b2 = (upcast_half(w) for w in (w1, b1, w2, b2))
    answers = grouped_linear(F.gelu(grouped_linear(asked, w1, b1, counts)), w2, b2, counts)  # [N k, o]
    back = torch.empty_like(order).scatter(0, order, torch.arange(len(order), device=x.device))
    y = (gates[:, :, None] * answers.index_select(0, back).view(*chosen.shape, sizes["o"])).sum(1)
    return y.to(x.dtype).reshape(*x.shape[:-1], sizes["o"])


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest scores of each row and their experts; a stable sort leaves ties to the lower expert."""
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    return values[:, :k], order[:, :k]
