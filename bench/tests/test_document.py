import copy
import dataclasses
import json

import pytest

from veriformer.bench import document
from veriformer.bench.document import Benchmarks, Conditions, Goal, Peer
from veriformer.bench.verdicts import Verdict


@pytest.fixture
def peer():
    return Peer(
        case="c",
        what="w",
        theirs="t",
        quantity="q",
        values={"ours": 2.0, "t": 1.0},
        ratio=2.0,
        interval=[1.5, 2.5],
        noise=1.1,
        goal=Goal(kind="at least", ratio=1.0),
        verdict=Verdict.CONFIRMED,
        reason=None,
        conditions=Conditions(rounds=6, threads=2, clock="wall", load=[0.5, 1.0]),
    )


@pytest.fixture
def whole(record, peer):
    return Benchmarks(
        suite={"version": "0.1.0", "commit": None},
        environment={"python": "3.13", "torch": "2.13.0", "platform": "Linux"},
        started="2025-01-01T00:00:00+00:00",
        duration_s=1.5,
        counts=[record],
        peers=[peer],
    )


def test_the_schema_is_one():
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(document.schema())


def test_what_is_written_reads_back_the_same(tmp_path, whole):
    document.write(whole, tmp_path / "b.json")
    assert document.read(tmp_path / "b.json") == whole
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


def test_verdicts_make_the_exit_status(whole):
    assert whole.exit_status == 1
    assert whole.summary == {"refuted": 1}
    assert Benchmarks(suite={}, environment={}, started="", duration_s=0).exit_status == 0


def test_a_goal_that_is_missed_makes_the_exit_status(whole, peer):
    whole.counts = []
    assert whole.exit_status == 0
    whole.peers = [dataclasses.replace(peer, verdict=Verdict.REFUTED)]
    assert whole.exit_status == 1


def test_a_document_without_peers_is_read(tmp_path, whole):
    """Such are those of counts that were written before there were peers."""
    older = whole.to_dict()
    del older["peers"]
    (tmp_path / "b.json").write_text(json.dumps(older))
    assert document.read(tmp_path / "b.json").peers == []


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("verdict",), "fine", "counts/0/verdict"),
        (("points",), -1, "counts/0/points"),
        (("claim", "kind"), "vague", "counts/0/claim"),
        (("extra",), 1, "counts/0"),
    ],
)
def test_what_breaks_the_schema_is_refused_by_place(tmp_path, place, value, named, whole):
    broken = copy.deepcopy(whole.to_dict())
    inside = broken["counts"][0]
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    (tmp_path / "b.json").write_text(json.dumps(broken))
    with pytest.raises(ValueError, match=rf"b\.json: expected a benchmarks file.*benchmarks: {named}"):
        document.read(tmp_path / "b.json")


def test_what_is_no_file_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"absent\.json: expected a benchmarks file"):
        document.read(tmp_path / "absent.json")
