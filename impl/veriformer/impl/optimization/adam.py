"""Adam and AdamW: steps of a length that does not depend on the gradient's scale."""

from sys import float_info
from typing import Any

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.optimization.fp32_copies import copy_back, fp32_copies
from veriformer.impl.optimization.optimizer import ParameterwiseOptimizer, Params, decay_rate
from veriformer.impl.precision import accumulation_dtype

Betas = tuple[float, float]


class Adam(ParameterwiseOptimizer):
    """θ ← θ − η m̂ / (√v̂ + ε), with L2 decay in the gradient. See `adam`.

    The state of a parameter is its `step` count, the averages `m` and `v`, and `beta_products`: the products of all
    β₁ and of all β₂ so far, which are β₁^t and β₂^t while these are constant, and keep the averages unbiased while they
    change.
    """

    FUSED = staticmethod(torch._fused_adam_)

    def __init__(
        self, params: Params, lr: float, *, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def check(self, options: dict[str, Any]) -> dict[str, Any]:
        """Check that both β lie in [0, 1), and that ε and the decay are not negative."""
        numbers = {name: checks.nonnegative(name, options[name]) for name in ("eps", "weight_decay")}
        return {**super().check(options), "betas": _betas(options["betas"]), **numbers}

    def update(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        """Apply a step of (7) to (9); the averages of half-precision parameters are kept in float32."""
        states = [self._counted(p, group["betas"]) for p in params]
        wide, g = fp32_copies(params), fp32_copies(grads)
        if not self._update_fused(wide, g, states, group):
            self._update_each(wide, g, states, group)
        copy_back(params, wide)

    def _update_fused(self, params: list[Tensor], g: list[Tensor], states: list[Any], group: dict[str, Any]) -> bool:
        """Update by PyTorch's fused kernel, and return whether it could be.

        It reads all memory as it lies, and takes the β of all steps to be those of this one.
        """
        betas = group["betas"]
        m, v = [s["m"] for s in states], [s["v"] for s in states]
        if not (all(x.is_contiguous() for x in (*params, *g, *m, *v)) and all(_constant(s, betas) for s in states)):
            return False
        device = params[0].device
        counts = {t: torch.full((), t, dtype=torch.float32, device=device) for t in {s["step"] for s in states}}
        self.FUSED(
            params, g, m, v, [], [counts[s["step"]] for s in states], amsgrad=False, maximize=False,
            lr=group["lr"], beta1=betas[0], beta2=betas[1], weight_decay=group["weight_decay"], eps=group["eps"],
        )  # fmt: skip
        return True

    def _update_each(self, params: list[Tensor], g: list[Tensor], states: list[Any], group: dict[str, Any]) -> None:
        g = self.decayed(params, g, group)
        (beta_1, beta_2), eps = group["betas"], group["eps"]
        m, v = [s["m"] for s in states], [s["v"] for s in states]
        torch._foreach_lerp_(m, g, 1 - beta_1)
        torch._foreach_mul_(v, beta_2)
        torch._foreach_addcmul_(v, g, g, 1 - beta_2)
        # η m̂ / (√v̂ + ε) = η r / (1 − Πβ₁) · m / (√v + ε r) with r = √(1 − Πβ₂): one pass less over the parameters.
        roots = [(1 - s["beta_products"][1]) ** 0.5 for s in states]
        sizes = [-group["lr"] * r / (1 - s["beta_products"][0]) for r, s in zip(roots, states, strict=True)]
        denominators = torch._foreach_sqrt(v)
        torch._foreach_add_(denominators, [eps * r for r in roots])
        torch._foreach_addcdiv_(params, m, denominators, sizes)

    def decayed(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Return the gradients with λ θ added."""
        if not group["weight_decay"]:
            return grads
        return list(torch._foreach_add(grads, params, alpha=group["weight_decay"]))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a saved state; one that was saved when `beta_products` was called `unseen` is read all the same."""
        names = {"unseen": "beta_products"}
        state = {i: {names.get(k, k): x for k, x in s.items()} for i, s in state_dict["state"].items()}
        super().load_state_dict({**state_dict, "state": state})

    def _counted(self, p: Tensor, betas: Betas) -> dict[str, Any]:
        """Return the state of a parameter, with one step more on its count."""
        state: dict[str, Any] = self.state[p]
        if not state:
            m, v = (torch.zeros_like(p, dtype=accumulation_dtype(p.dtype)) for _ in range(2))
            state.update(step=0, beta_products=(1.0, 1.0), m=m, v=v)
        state["step"] += 1
        state["beta_products"] = (state["beta_products"][0] * betas[0], state["beta_products"][1] * betas[1])
        return state


class AdamW(Adam):
    """θ ← (1 − η λ) θ − η m̂ / (√v̂ + ε): the decay passes by the averages. See `adamw`."""

    FUSED = staticmethod(torch._fused_adamw_)

    def decayed(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Shrink the parameters in place, and return the gradients as they are."""
        if group["weight_decay"]:
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        return grads


def _constant(state: dict[str, Any], betas: Betas) -> bool:
    """Return whether all steps so far had these β: each product is β^t but for t roundings."""
    t = state["step"]
    products = zip(state["beta_products"], betas, strict=True)
    return all(
        abs(product - beta**t) <= t * float_info.epsilon * beta**t + float_info.min for product, beta in products
    )


def adam(
    params: Params, lr: float, *, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
) -> Adam:
    r"""Return an optimizer with steps of about `lr` per entry, whatever the scale of the gradient.

    $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \quad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2, \quad
      \theta \leftarrow \theta - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$

    with $\hat m = m / (1 - \beta_1^t)$, $\hat v = v / (1 - \beta_2^t)$ and the gradient $g + \lambda \theta$ where
    `weight_decay` λ is not 0 (L2). ε is added to the root, not under it, after the correction. Each parameter counts
    its own steps t. `params`: leaf tensors or groups; float64, float32, bfloat16 or float16, of which halves have
    their averages, and each update before it is written, in float32. A parameter whose `grad` is `None` is skipped.
    Raises `ValueError` for negative options, `betas` outside [0, 1) and no parameters, `TypeError` for what is no
    tensor or no number. Equations 7 to 9.
    """
    return Adam(params, lr, betas=betas, eps=eps, weight_decay=weight_decay)


def adamw(
    params: Params, lr: float, *, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01
) -> AdamW:
    r"""Return Adam with decoupled weight decay: parameters shrink by 1 − ηλ and the averages never see it.

    $$\theta \leftarrow (1 - \eta\lambda)\, \theta - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$

    A parameter whose `grad` is `None` does not shrink either. Everything else is as for `adam`. Documents 000 and 001,
    section 9.2.
    """
    return AdamW(params, lr, betas=betas, eps=eps, weight_decay=weight_decay)


def _betas(betas: object) -> Betas:
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        checks.raise_for("betas", "two numbers", repr(betas), "pass (beta_1, beta_2)", TypeError)
    first, second = (decay_rate("betas", beta) for beta in betas)
    return first, second
