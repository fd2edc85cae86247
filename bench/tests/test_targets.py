import pytest

from veriformer.bench.counts import FLOPS, PEAK, Case, Series, block_size, causal
from veriformer.bench.polynomials import Axis, Grid
from veriformer.bench.targets import NAMES, UnknownTargetError, find
from veriformer.bench.verdicts import Verdict

LENGTHS = Case(
    "small",
    Grid((Axis("n_q", (5, 64), 130), Axis("n_k", (7, 65), 259), Axis("d_k", (2, 3), 5), Axis("d_v", (2, 3), 7))),
    letters={"B": 1, "H": 2, "G": 1},
)
LONG = Case(
    "self-attention",
    Grid((Axis("n", (512, 768, 1024), 1280),)),
    letters={"B": 1, "H": 1, "G": 1, "n_q": "n", "n_k": "n", "d_k": 8, "d_v": 8},
    fixed={"w": 4},
)


@pytest.mark.whole
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", ["impl:reference", "impl:tiled"])
def test_flops_are_the_specification_s(name, backward):
    assert Series(find(name), LENGTHS, FLOPS, backward).count().verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("backward", [False, True])
def test_tiled_skips_what_the_causal_mask_hides(backward):
    tiled = find("impl:tiled")
    block = block_size(tiled.attention)
    letters = {"B": 1, "H": 1, "G": 1, "n_q": "n", "n_k": "n", "d_k": 2, "d_v": 3}
    grid = Grid((Axis("n", (block, 2 * block, 3 * block), 4 * block),))
    case = Case("causal", grid, letters, options={"is_causal": True}, fixed=causal(block).fixed)
    found = Series(tiled, case, FLOPS, backward).count()
    assert found.verdict is Verdict.CONFIRMED
    assert f"(n + {block})" in found.measured.text


@pytest.mark.whole
@pytest.mark.parametrize(("name", "degree"), [("impl:reference", 2), ("impl:tiled", 1), ("impl:sdpa", 1)])
def test_peak_memory_grows_as_the_specification_says(name, degree):
    for backward in (False, True):
        found = Series(find(name), LONG, PEAK, backward).count()
        assert (found.verdict, found.claim.degree) == (Verdict.CONFIRMED, degree), found


def test_an_unknown_target_is_refused_with_those_there_are():
    with pytest.raises(UnknownTargetError, match=", ".join(NAMES)):
        find("impl:nonsense")
