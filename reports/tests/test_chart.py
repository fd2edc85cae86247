import re
from xml.etree import ElementTree

from veriformer.reports.charts import bound_use, error_by_size, legend, use_by_size
from veriformer.reports.runs import label
from veriformer.verify.results import Status


def test_one_mark_per_measured_row_in_the_page_s_own_colours(run, row):
    rows = [row(dtype="fp64"), row("softmax.a", "fp64", worst_ratio=0.0), row("softmax.b", "bf16", worst_ratio="inf")]
    rows += [row("softmax.c", worst_ratio=None), row("softmax.d", worst_ratio="nan")]
    chart = bound_use(label([run(rows)]))
    ElementTree.fromstring(chart)
    assert len(re.findall(r"<use [^>]*var\(--series-", chart)) == 3
    assert not re.search(r"#0[1-4]0[1-4]0[1-4]", chart)
    assert "currentColor" in chart


def test_what_neither_holds_nor_is_violated_is_not_drawn_in_the_red(run, row):
    rows = [row("softmax.a", worst_ratio=9.0, status=status) for status in (Status.KNOWN_FAIL, Status.ADVICE)]
    assert bound_use(label([run(rows)])) is None
    assert bound_use(label([run([*rows, row(status=Status.FAIL)])])).count("<use ") == 1


def test_it_is_the_same_every_time_and_undated(run):
    runs = label([run(), run(target="other")])
    assert bound_use(runs) == bound_use(runs)
    assert "metadata" not in bound_use(runs)
    assert "<?xml" not in bound_use(runs)


def test_labels_are_text_and_escaped(run, hostile):
    chart = bound_use(label([run(target="<b>&")]))
    assert "&lt;b&gt;&amp;" in chart
    assert "<script" not in bound_use(label([run(target=hostile)]))


def test_nothing_measured_is_no_chart(run, row):
    assert bound_use(label([run([row(worst_ratio=None)])])) is None


def test_drawn_dtypes_differ_by_sign_and_colour(run, row):
    rows = [row(dtype=dtype) for dtype in ("fp64", "fp32", "bf16", "fp16")]
    dtypes, signs, colours = zip(*legend(label([run(rows)])), strict=True)
    assert len(set(signs)) == len(set(colours)) == len(set(dtypes)) == 4
    assert [dtype for dtype, _, _ in legend(label([run(rows[1:2])]))] == ["fp32"]


def test_errors_stand_over_the_sizes_of_their_calls(run, row):
    rows = [row(f"softmax.{n}", worst_size=n, worst_ratio=ratio) for n, ratio in ((1, 0.1), (40, 0.2), (90_000, 9.0))]
    rows += [row("softmax.none"), row("softmax.empty", worst_size=0), row("gelu.a", worst_size=5, worst_ratio=None)]
    runs = label([run(rows)])
    chart = error_by_size(runs)
    ElementTree.fromstring(chart)
    places = [
        (float(x), float(y)) for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="[^"]*series-', chart)
    ]
    assert len(places) == 4
    assert sorted(x for x, _ in places)[-1] == max(places, key=lambda place: -place[1])[0]  # the largest is the worst
    assert all(f">{tick}<" in chart for tick in ("1", "100", "10 000", "numbers in the call"))
    assert (
        use_by_size(runs)
        == "In calls of at most 20.5 numbers the median of these 2 shares is 0.17, in the 2 larger ones 4.6."
    )


def test_sizes_that_were_not_recorded_are_no_chart(run, row):
    runs = label([run([row(), row("softmax.a", worst_size=3, status=Status.KNOWN_FAIL)])])
    assert error_by_size(runs) is None
    assert use_by_size(runs) == ""
    assert use_by_size(label([run([row(worst_size=3)])])) == ""
