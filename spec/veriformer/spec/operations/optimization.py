"""Optimization: steps, learning rates and what is done to gradients."""

from veriformer.spec.operations.call import Integer, Mark, Number, Operation, Other, Pair, TensorList
from veriformer.spec.operations.layers import EPS

_OBJECT = {"params": TensorList(), "lr": Number(least=0.0)}
_DECAYS = (0.0, 0.01, 0.1, 1e-4, 5e-4)
_BETAS = Pair(default=(0.9, 0.999), usual=((0.9, 0.999), (0.9, 0.95), (0.9, 0.98), (0.9, 0.99), (0.95, 0.999)))
_STEP = {"step": Mark()}


def _of_adam(weight_decay: float) -> dict[str, Number | Pair]:
    return {
        "betas": _BETAS,
        "eps": Number(default=1e-8, least=0.0, usual=EPS, between=(0.0, 1e-2)),
        "weight_decay": Number(default=weight_decay, least=0.0, usual=_DECAYS),
    }


OPERATIONS = (
    Operation(name="gradient_descent", says="Gradient descent: θ − lr · g (3).", call=_OBJECT),
    Operation(
        name="sgd_momentum",
        says="SGD with momentum: steps along v = β v + (1 − β) g, which starts at 0 (5, 6).",
        call=_OBJECT,
        options={"beta": Number(default=0.9, least=0.0, usual=(0.9, 0.99, 0.95, 0.5, 0.0), between=(0.0, 1.0))},
    ),
    Operation(
        name="adam",
        says="Adam; weight decay is L2, added to the gradient (7, 8, 9).",
        call=_OBJECT,
        options=_of_adam(0.0),
    ),
    Operation(name="adamw", says="AdamW: Adam with decoupled weight decay (9).", call=_OBJECT, options=_of_adam(0.01)),
    Operation(
        name="warmup",
        says="Learning rate of a linear warmup; steps count from 0 (10).",
        call=_STEP,
        options={"max_lr": Number(), "warmup_steps": Integer()},
    ),
    Operation(
        name="warmup_cosine",
        says="Learning rate of a linear warmup, then half a cosine to 0, where it stays; steps count from 0.",
        call=_STEP,
        options={"max_lr": Number(), "warmup_steps": Integer(), "total_steps": Integer()},
    ),
    Operation(
        name="noam",
        says="Learning rate of the original Transformer; steps count from 1.",
        call=_STEP,
        options={"d_model": Integer(), "warmup_steps": Integer()},
    ),
    Operation(
        name="clip_grad_norm",
        says="Clipping by global norm: the gradients scaled to norm max_norm at most, and their norm before (11).",
        call={"grads": TensorList(), "max_norm": Number(least=0.0)},
    ),
    Operation(
        name="accumulate_gradients",
        says="Gradients of the mean loss over all tokens of all micro-batches; loss_fn gives a sum and a count.",
        call={"loss_fn": Other(), "params": TensorList(), "micro_batches": Other()},
    ),
)
