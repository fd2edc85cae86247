"""Requirements of clipping by the global norm (equation 11)."""

from veriformer.spec.requirements import families

CLIP_GRAD_NORM = (
    families.contract("clip_grad_norm", ("11",)),
    families.equation(
        "clip_grad_norm",
        ("11",),
        r"$\tilde g = \min(1, c / \lVert g \rVert_2)\, g$ with the norm of all tensors of the list together, "
        "which is returned too.",
    ),
)
