import pytest

from veriformer.reports.evidence import SHOWN_ELEMENTS, collect_evidence, suite_errors
from veriformer.reports.runs import label
from veriformer.verify.results import Status


def example(observed, exact, bound, **arguments):
    return {"arguments": arguments, "observed": observed, "exact": exact, "bound": bound}


def test_the_worst_elements_come_first():
    found = collect_evidence(example([[1.0, 2.0], [3.0, "nan"]], [[1.0, 2.5], [3.5, 0.0]], [[0.1, 1.0], [0.25, 0.1]]))
    assert [(e.place, e.ratio_text, e.outside) for e in found.elements] == [
        ("[1, 1]", "inf", True),
        ("[1, 0]", "2", True),
        ("[0, 1]", "0.5", False),
        ("[0, 0]", "0", False),
    ]
    assert found.plain == []


@pytest.mark.parametrize(
    ("observed", "exact", "bound", "ratio"),
    [("inf", "inf", 0.0, 0.0), ("inf", 1.0, 1.0, float("inf")), (1.0, 2.0, 0.0, float("inf")), (1.0, 2.0, "inf", 0.0)],
)
def test_ratios_at_the_edges(observed, exact, bound, ratio):
    [element] = collect_evidence(example([observed], [exact], [bound])).elements
    assert element.ratio == ratio


def test_numbers_are_evidence_and_are_not_rounded():
    [element] = collect_evidence(example(0.1234567890123456789, 0.1, 1e-17)).elements
    assert (element.observed, element.exact, element.bound) == ("0.12345678901234568", "0.1", "1e-17")


def test_many_elements_are_cut_and_counted():
    many = SHOWN_ELEMENTS + 5
    found = collect_evidence(example([float(i) for i in range(many)], [0.0] * many, 1.0))
    assert (len(found.elements), found.more) == (SHOWN_ELEMENTS, 5)
    assert found.elements[0].place == f"[{many - 1}]"


def test_what_is_no_list_of_numbers_is_shown_as_it_is():
    found = collect_evidence(example("a ValueError", "a TypeError", None))
    assert found.plain == [("observed", "a ValueError"), ("exact", "a TypeError")]
    assert found.elements == ()


def test_arguments_have_name_kind_and_values():
    tensor = {"dtype": "float32", "shape": [2], "values": ["inf", 1.0]}
    found = collect_evidence(example([1], [2], [0], z=tensor, dim=-1, mask=None, big=[0] * 9000))
    assert found.arguments[:3] == [("z", "float32 [2]", '["inf", 1.0]'), ("dim", "int", "-1"), ("mask", "", "null")]
    assert found.arguments[3][2].endswith("(27000 characters; whole in results.json)")


def test_rows_in_which_the_suite_broke_stand_apart(run, all_statuses):
    found = suite_errors(label([run(all_statuses)]))
    assert [row.status for _, row in found] == [Status.HARNESS_ERROR]
