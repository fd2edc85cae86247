from veriformer.reports.matrix import filters, matrix
from veriformer.reports.runs import label
from veriformer.verify.results import Status


def test_cells_aggregate_dtypes_the_worst_first(run, row, violation):
    rows = [row("softmax.shift", "fp64", worst_ratio=0.5), row("softmax.shift", "fp32"), violation(dtype="fp16")]
    [group] = matrix(label([run(rows)]))
    [line] = group.rows
    parts = [(look.status, dtypes, ratio) for look, dtypes, ratio in line.cells[0].parts]
    assert parts == [(Status.FAIL, ["fp16"], 500000.0), (Status.PASS, ["fp64", "fp32"], 0.5)]
    assert (group.operation, line.law, line.equations) == ("softmax", "shift", ("1",))
    assert [(look.status, count) for look, count in group.tally] == [(Status.FAIL, 1), (Status.PASS, 2)]


def test_a_requirement_that_a_run_did_not_plan_is_no_cell(run, row):
    one, two = run([row()], target="a"), run([row("layer_norm.shift"), row()], target="b")
    groups = matrix(label([one, two]))
    assert [group.operation for group in groups] == ["softmax", "layer_norm"]
    assert [cell is None for cell in groups[0].rows[0].cells] == [False, False]
    assert [cell is None for cell in groups[1].rows[0].cells] == [True, False]


def test_an_operation_that_nobody_provides_is_not_shown_row_by_row(run, row):
    rows = [row(), row("gelu.equation", status=Status.NOT_PROVIDED), row("gelu.range", status=Status.NOT_PROVIDED)]
    softmax, gelu = matrix(label([run(rows)]))
    assert softmax.provided
    assert not gelu.provided
    other = run([row("gelu.equation")], target="b")
    assert all(group.provided for group in matrix(label([run(rows), other])))


def test_ratios_that_are_no_numbers_are_ordered_all_the_same(run, row):
    rows = [
        row(dtype="fp64", worst_ratio="nan"),
        row(dtype="fp32", worst_ratio="inf"),
        row(dtype="bf16", worst_ratio=None),
    ]
    [group] = matrix(label([run(rows)]))
    assert group.rows[0].cells[0].parts[0][2] == float("inf")


def test_a_cell_says_why_it_shows_nothing(run, row):
    rows = [
        row(dtype="fp64", status=Status.VACUOUS, message="the bound exceeds\nthe value"),
        row(dtype="fp32", status=Status.BLOCKED, blocked_by="softmax.contract", message="not this"),
    ]
    [group] = matrix(label([run(rows)]))
    cell = group.rows[0].cells[0]
    assert (cell.reasons, cell.blockers) == (["the bound exceeds the value"], ["softmax.contract"])


def test_what_is_worst_comes_first_and_what_nobody_has_is_no_row(run, row, violation):
    rows = [
        row("gelu.equation"),
        row(),
        row("softmax.grouped", status=Status.NOT_PROVIDED),
        violation("softmax.last"),
        row("silu.equation", status=Status.NOT_PROVIDED),
    ]
    groups = matrix(label([run(rows)]))
    assert [group.operation for group in groups] == ["softmax", "gelu", "silu"]
    assert [line.law for line in groups[0].asked] == ["last", "equation"]
    assert groups[0].lacking == ["grouped"]
    assert filters(groups) == [("violated", 1), ("held", 2)]


def test_nothing_run_is_an_empty_matrix(run):
    assert matrix(label([run([])])) == []
