"""A campaign goes where most is to be seen, keeps what it found, replays it first, and says what may be missed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from tests.dask_processes import running
from veriformer.verify.engine import remote
from veriformer.verify.engine.campaign import report
from veriformer.verify.engine.campaign.plan import Campaign, CampaignError, read
from veriformer.verify.engine.campaign.power import Arm, choose
from veriformer.verify.engine.campaign.run import Ran, Runs, read_state
from veriformer.verify.engine.campaign.turn import Turns, database, stored_examples
from veriformer.verify.engine.plan import Plan
from veriformer.verify.examples import EXAMPLES_PER_SEED
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.shipping import Shipped

ROW = "softmax.equation[fp32-cpu]"
RARE = """
import torch

def softmax(z, dim=-1):
    y = torch.softmax(z, dim)
    return y * 1.25 if z.ndim == 3 and z.shape[dim] > 3 else y
"""
RIGHT = RARE.replace("> 3", "> 10 ** 9")


def turns(folder: Path, source: str, **fields: Any) -> Callable[..., dict[str, Any]]:
    file = folder / "mine.py"
    file.write_text(source)
    plan = Plan(target=str(file), only=("softmax",), dtypes=("fp32",), strict=True, **fields)
    made = Turns({"p": plan}, {"p": Shipped(str(file), str(file))}, str(folder / "examples"))

    def turn(kind: str, seed: str = "s", **more: Any) -> dict[str, Any]:
        said = {
            "plan": "p",
            "row": ROW,
            "kind": kind,
            "seed": seed,
            "seconds": 0.2,
            "hardest": 0.0,
            "stored": None,
            "more": [],
        }
        return made.run("x", {**said, **more})

    return turn


@pytest.mark.whole
def test_what_failed_is_kept_and_replayed_first(tmp_path: Path) -> None:
    turn = turns(tmp_path, RARE)
    first = next(found for n in range(50) if (found := turn("independent", f"s{n}"))["result"]["status"] == "fail")
    assert stored_examples(database(str(tmp_path / "examples")), f"p {ROW}")
    again = turn("replay", "another")
    assert again["result"]["status"] == "fail"
    assert again["result"]["examples"] == 1
    assert again["result"]["counterexample"]["arguments"] == first["result"]["counterexample"]["arguments"]


@pytest.mark.whole
def test_the_hardest_example_is_kept_and_replayed_and_directed_turns_come_no_less_near(tmp_path: Path) -> None:
    turn = turns(tmp_path, RIGHT)
    hardest = max(turn("independent", f"s{n}")["result"]["worst_ratio"] for n in range(3))
    replayed = turn("replay", "another")["result"]
    assert replayed["status"] == "pass"
    assert replayed["worst_ratio"] == hardest
    assert turn("directed", "d")["result"]["worst_ratio"] >= hardest
    assert turn("replay", "yet another")["result"]["worst_ratio"] >= hardest


@pytest.mark.whole
def test_directed_turns_cover_more_of_what_few_examples_have_covered(tmp_path: Path) -> None:
    directed, independent = zip(*(_rarity(tmp_path / str(n), str(n)) for n in range(10)), strict=True)
    assert sum(directed) > 1.1 * sum(independent)


def _rarity(folder: Path, seed: str) -> tuple[float, float]:
    """Return the rates at which a directed and an independent turn cover, per example, features that few examples
    covered."""
    folder.mkdir()
    turn, known = turns(folder, RIGHT), arm()
    for letter in "abc":
        found = turn("independent", f"{letter}{seed}", seconds=1e-3)
        known.note(found["drawn"], found["seen"])

    def rare(found: dict[str, Any]) -> float:
        return float(sum(times for thing, times in found["seen"].items() if thing not in known.more) / found["drawn"])

    directed = turn("directed", f"d{seed}", more=sorted(known.more))
    return rare(directed), rare(turn("independent", f"e{seed}", seconds=1e-3))


def test_equal_seeds_draw_equal_examples_and_others_are_independent(tmp_path: Path) -> None:
    turn = turns(tmp_path, RIGHT)
    one, two, three = (turn("independent", seed, seconds=1e-3) for seed in ("a", "a", "b"))
    assert one["seen"] == two["seen"] != three["seen"]
    assert 0 < one["effective"] <= one["result"]["examples"] == EXAMPLES_PER_SEED


def test_a_row_with_nothing_to_replay_is_no_error(tmp_path: Path) -> None:
    found = turns(tmp_path, RIGHT)("replay")
    assert (found["result"]["status"], found["effective"]) == ("pass", 0)
    assert not stored_examples(database(str(tmp_path / "examples")), f"p {ROW}")


def arm(**fields: Any) -> Arm:
    return Arm(**{"plan": "p", "row": ROW, "status": Status.PASS, "last": 0.0, **fields})


def test_the_limit_of_what_may_be_missed_is_that_of_clopper_and_pearson() -> None:
    assert arm(independent=0).missed == 1
    assert abs(arm(independent=3000).missed - 3 / 3000) < 3e-6  # the rule of three
    assert abs(arm(independent=10, failed=1).missed - 0.3941633) < 1e-6  # tabulated
    assert arm(independent=4, failed=4).missed == 1
    assert arm(independent=10, directed=10**6).missed == arm(independent=10).missed


def test_time_goes_to_growth_and_none_waits_for_ever() -> None:
    seen = arm(row="seen", drawn=1000, seconds=10.0, more={"a"})
    unseen = arm(row="unseen", drawn=1000, seconds=10.0, once=set("abcdefgh"))
    near = arm(row="near", drawn=1000, seconds=10.0, nearest=0.9)
    far = arm(row="far", drawn=1000, seconds=10.0, nearest=0.1)
    new, failed = arm(row="new", last=None), arm(row="failed", status=Status.FAIL)
    assert unseen.growth > near.growth > far.growth > seen.growth
    assert choose([seen, unseen, new, failed], 1.0) is new
    arms, turns = [seen, unseen, near, far], {"seen": 0, "unseen": 0, "near": 0, "far": 0}
    for now in range(1, 3000):
        chosen = choose(arms, float(now))
        assert chosen is not None
        turns[chosen.row] += 1
        chosen.last = float(now)
    assert turns["unseen"] > turns["near"] > turns["far"] > turns["seen"] > 0
    assert choose([failed, arm(row="absent", status=Status.NOT_PROVIDED)], 1.0) is None


def test_a_row_whose_turns_take_long_has_no_more_time_than_another_of_equal_growth() -> None:
    slow = arm(row="slow", drawn=100, seconds=100.0, turns=10, once=set("abcdefghij"))
    quick = arm(row="quick", drawn=1000, seconds=100.0, turns=1000, once=set("abcdefghij"))
    assert abs(slow.growth - quick.growth) < 1e-9
    now, spent = 0.0, {"slow": 0.0, "quick": 0.0}
    while now < 1000:
        chosen = choose([slow, quick], now)
        assert chosen is not None
        now += chosen.turn_s
        spent[chosen.row] += chosen.turn_s
        chosen.last = now
    assert 0.5 < spent["slow"] / spent["quick"] < 2


def test_what_was_covered_is_counted_once_or_more() -> None:
    one = arm()
    one.note(3, {"a": 1, "b": 2})
    one.note(2, {"a": 1, "c": 1})
    assert (one.once, one.more, one.drawn) == ({"c"}, {"a", "b"}, 5)
    assert one.unseen == 0.2
    assert Arm.from_dict(one.to_dict()) == arm(once={"c"}, more={"a", "b"}, drawn=5, last=None)


def test_a_turn_counts_in_how_many_examples_each_thing_was_covered(tmp_path: Path) -> None:
    turn = turns(tmp_path, RIGHT)("independent")
    assert turn["drawn"] == turn["result"]["examples"] > 0
    assert max(turn["seen"].values()) <= turn["drawn"] < sum(turn["seen"].values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "targets: expected at least one"),
        ("targets = ['a']\nhours = 3", "unknown key 'hours'"),
        ("targets = 'a'", "targets: expected a list"),
        ("targets = ['a']\nprofiles = ['slow']", "profiles: expected some of quick"),
        ("targets = ['a']\ndtypes = ['fp12']", "fp12"),
        ("targets = [", "Unclosed array|array|Invalid"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(CampaignError, match=words):
        read(file)


def held(campaign: Campaign, address: str, seed: str) -> tuple[Ran, dict[str, Any], list[str]]:
    noted: list[str] = []

    def tell(arm: Arm, result: Result) -> None:
        noted.append(arm.row)

    def clock() -> float:
        """A quarter of a second a turn, however long it took."""
        return len(noted) / 4

    ran = Runs(campaign, remote.Place(address), seed, 3 / 3600, tell, date.today(), clock).go()
    document = report.document(ran)
    report.validate(document)
    assert set(noted) == {row["row"] for row in document["rows"]}
    assert ran.stopped is None
    assert document["ended_waivers"] == ["softmax.purity: old (until 2020-01-01)"]
    return ran, document, noted


@pytest.mark.whole
def test_two_campaigns_on_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RARE + "\ndef silu(x):\n    return x * x.sigmoid()\n")
    (tmp_path / "known.toml").write_text(
        '[[waiver]]\nrequirement = "softmax.purity"\nreason = "old"\nlink = "https://x"\nexpires = 2020-01-01\n'
    )
    campaign = Campaign(
        targets=(str(tmp_path / "mine.py"),),
        store=tmp_path / "kept",
        dtypes=("fp32",),
        only=("softmax.equation", "softmax.purity", "silu.equation"),
        waivers=tmp_path / "known.toml",
    )
    with running(tmp_path, workers=1) as there:
        found = [held(campaign, there.address, seed) for seed in ("1", "2")]
    (first, told, _), (second, again, noted) = found
    assert report.violated(first)
    assert all(finding["new"] for findings in told["findings"].values() for finding in findings)
    assert told["replayed"] == 0
    assert again["replayed"] > 0
    failed = [row["row"] for row in told["rows"] if row["status"] == "fail"]
    assert failed
    assert all(noted.count(row) == 1 for row in failed), "they fail at once, by what was kept, and have no further turn"
    assert not any(finding["new"] for findings in again["findings"].values() for finding in findings)
    rows = {row["row"]: row for row in again["rows"]}
    silu = rows["silu.equation[fp32-cpu]"]
    assert silu["independent"] > silu["this_campaign"] > 0
    assert silu["missed"] < 3.1 / silu["independent"]
    assert read_state(campaign.store).campaigns == 2
    assert "may be missed" in report.markdown(second)
