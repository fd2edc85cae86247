"""Requirements of attention (equations 20 to 24a)."""

from veriformer.spec.requirements import families

ATTENTION = (
    families.contract("attention", ("20",)),
    families.equation(
        "attention",
        ("20", "21", "22", "23", "24a"),
        r"$O = \mathrm{softmax}(c \tanh(s\, Q K^\top / c) + B)\, V$ over the keys that mask, causality and window "
        r"admit, with $s = 1 / \sqrt{d_k}$ unless given, for any combination of options.",
    ),
    families.gradient(
        "attention",
        ("20", "21", "22", "23"),
        r"$\bar V = P^\top \bar O$, $\bar P = \bar O V^\top$, "
        r"$\bar S = P \odot (\bar P - \mathrm{rowsum}(P \odot \bar P))$, "
        r"$\bar Q = s \bar S' K$, $\bar K = s \bar S'^\top Q$, $\bar B = \bar S$ summed over broadcast axes.",
    ),
    families.purity("attention"),
    families.layout("attention"),
    *families.refusals(
        "attention",
        "Wrong ranks, dtypes that differ, sizes that do not match (nothing is broadcast but mask and bias), heads "
        "that the groups do not divide, masks that are not bool, windows without causality or below 1, caps that are "
        "not above 0 and probabilities outside $[0, 1]$ are refused.",
    ),
    families.batch(
        "attention",
        "Batch elements and groups of heads are independent: each can be computed alone.",
        ("https://github.com/pytorch/pytorch/pull/184180",),
    ),
    families.sensitivity("attention", ("https://github.com/sgl-project/sgl-kernel-xpu/pull/491",)),
    families.accuracy("attention"),
)
