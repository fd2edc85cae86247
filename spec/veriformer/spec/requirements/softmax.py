"""Requirements of softmax (equations 1, 21, 25)."""

from veriformer.spec.requirements import families

_STABLE = "https://github.com/tenstorrent/tt-metal/pull/10001"

SOFTMAX = (
    families.contract("softmax", ("1",)),
    families.equation(
        "softmax",
        ("1", "21"),
        r"$p_i = e^{z_i} / \sum_j e^{z_j}$ along any axis; an entry of $-\infty$ has probability 0.",
        (_STABLE,),
    ),
    families.gradient("softmax", ("25",), r"$\bar z_i = p_i (\bar p_i - \sum_j p_j \bar p_j)$."),
)
