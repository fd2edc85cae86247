"""Attention and its gradients in float64 by equations 20 to 24a, each with a bound on what rounding may change.

The gradients are written out (G_V, G_P, G_S, G_Q, G_K), not taken from autograd, and the bounds follow the formula
step by step: a sum of n terms in any order errs by γ_n Σ|x|, γ_n = nu / (1 − nu), and a score that is off by δ makes
its weight off by a factor of at most e^2δ.
"""

import torch

from tests.derived_bounds import after_rounding, gamma, working_roundoff


def visible_pairs(n_q, n_k, mask=None, is_causal=False, window=None):
    i = torch.arange(n_q)[:, None] + n_k - n_q
    j = torch.arange(n_k)[None, :]
    seen = torch.ones(n_q, n_k, dtype=torch.bool)
    if is_causal:
        seen &= j <= i
    if window is not None:
        seen &= j > i - window
    return seen if mask is None else seen & mask


def oracle(q, k, v, g, *, bias=None, scale=None, softcap=None, keep=None, dropout_p=0.0, u_factor=0.0, **hiding):
    """Return `{"o": (exact, bound), "q": …, "k": …, "v": …, "bias": …}`; bounds are those of the inputs' dtype.

    Rounding to the output dtype is included; float64 is granted twice, for this computation errs as well. `u_factor` is
    the roundoff with which weights, slopes and outputs are rounded before they are multiplied again, as matrix units
    for halves want them; below the normal numbers the error of a weight is `u_factor` times the smallest of them.
    """
    dtype = q.dtype
    u = working_roundoff(dtype)
    tiny = u_factor * torch.finfo(dtype).tiny
    q, k, v, g = (x.detach().double() for x in (q, k, v, g))
    (B, H, n_q, d_k), (_, G, n_k, d_v) = q.shape, v.shape
    R = H // G
    k, v = (x.repeat_interleave(R, 1) for x in (k, v))
    scale = d_k**-0.5 if scale is None else scale
    seen = visible_pairs(n_q, n_k, **hiding).expand(B, H, n_q, n_k)

    s, A = scale * q @ k.mT, abs(scale) * q.abs() @ k.abs().mT
    δ = gamma(d_k + 4, u) * A
    slope, δ_slope = torch.ones_like(s), torch.zeros_like(s)
    if softcap is not None:
        t = (s / softcap).tanh()
        slope, δ_slope = 1 - t**2, 2 * (δ / softcap + 8 * u)
        s, δ = softcap * t, δ + 8 * u * softcap
    if bias is not None:
        b = bias.detach().double()
        s, δ = s + b, δ + u * (s.abs() + 2 * b.abs().masked_fill(b.isinf(), 0))
    s, δ = s.masked_fill(~seen, -torch.inf), δ.masked_fill(~seen | s.isinf(), 0)
    m = s.amax(-1, keepdim=True) if n_k else s.new_zeros(B, H, n_q, 1)
    m = m.masked_fill(m == -torch.inf, 0)
    δ = δ + u * (s - m).abs().masked_fill(s == -torch.inf, 0)
    e = (s - m).exp()
    l = e.sum(-1, keepdim=True)
    p = e / l.masked_fill(l == 0, 1)
    δ = δ.amax(-1, keepdim=True) if n_k else δ.sum(-1, keepdim=True)
    ε = torch.expm1(2 * δ) + gamma(n_k + 24, u)  # of each weight, relatively

    kept = torch.ones_like(p) if keep is None else keep.double() / (1 - dropout_p)
    p̃ = p * kept
    o, A_o = p̃ @ v, p̃ @ v.abs()
    B_o = (ε + u_factor + gamma(n_k + 16, u)) * A_o + tiny * (kept @ v.abs())
    dv = p̃.mT @ g
    B_dv = (p̃ * (ε + u_factor) + tiny * kept).mT @ g.abs() + gamma(n_q * R + 16, u) * (p̃.mT @ g.abs())
    dp, A_dp = kept * (g @ v.mT), kept * (g.abs() @ v.abs().mT)
    D, A_D = (p * dp).sum(-1, keepdim=True), (p * A_dp).sum(-1, keepdim=True)
    ds, A_ds = p * (dp - D), p * (A_dp + A_D)
    B_ds = (2 * ε + gamma(n_k + d_v + 32, u)) * A_ds
    if u_factor:  # D is then taken from the output as it was rounded
        B_ds = B_ds + p * (g.abs() * (B_o + u_factor * (o.abs() + B_o))).sum(-1, keepdim=True)
    db, B_db, A_db = ds, B_ds, A_ds
    ds, B_ds, A_ds = ds * slope, B_ds * slope + (B_ds + A_ds) * δ_slope, A_ds * slope
    n = max(n_k, n_q * R)
    dq, dk = scale * ds @ k, scale * ds.mT @ q
    B_ds = B_ds + 2 * u_factor * (ds.abs() + B_ds)  # twice, for TF32 is cut off rather than rounded
    B_dq = abs(scale) * ((B_ds + gamma(n + 16, u) * A_ds) @ k.abs())
    B_dk = abs(scale) * ((B_ds + gamma(n + 16, u) * A_ds).mT @ q.abs())

    result = {"o": (o, B_o), "q": (dq, B_dq)}
    result["k"], result["v"] = ((_by_group(x, G), _by_group(b, G)) for x, b in ((dk, B_dk), (dv, B_dv)))
    if bias is not None:
        summed = (db, B_db + gamma(B * H * n_q * n_k, u) * A_db)
        result["bias"] = tuple(x.sum_to_size((1,) * (4 - bias.ndim) + bias.shape).view(bias.shape) for x in summed)
    dtypes = dict.fromkeys(result, dtype) | ({} if bias is None else {"bias": bias.dtype})
    return {name: (x, after_rounding(x, b, dtypes[name])) for name, (x, b) in result.items()}


def _by_group(x, G):
    return x.unflatten(1, (G, -1)).sum(2)
