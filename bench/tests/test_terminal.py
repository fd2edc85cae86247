import io
from dataclasses import replace

from rich.console import Console

from veriformer.bench.terminal import in_words, line, table
from veriformer.bench.verdicts import Verdict


def test_a_line_says_what_was_counted_what_was_predicted_and_where_they_differ(record):
    assert line(record) == (
        "refuted        mine  FLOPs, all lengths, forward: counted 2*n; predicted 3*n; at n = 1: counted 2, predicted 3"
    )


def test_the_table_of_a_terminal_tells_the_verdict_by_sign_and_word(record):
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=200).print(table([record]))
    assert "✗ refuted" in out.getvalue()
    assert "predicted 3*n" in out.getvalue()


def test_what_is_confirmed_is_said_beside_what_is_not_countable(record):
    sure = replace(record, verdict=Verdict.CONFIRMED, witness=None)
    unknown = replace(record, case="grouped", verdict=Verdict.NOT_COUNTABLE, measured=None, reason="it raised")
    both = replace(unknown, passes="forward and backward")
    assert in_words([sure, unknown, both]) == (
        "FLOPs, all lengths: 2*n (as the formula); "
        "not countable: FLOPs, grouped; grouped, forward and backward: it raised"
    )


def test_what_holds_of_several_quantities_is_said_once(record):
    one = replace(record, verdict=Verdict.INCONCLUSIVE, measured=None, reason="no polynomial")
    other = replace(one, quantity="bytes moved")
    assert in_words([one, other]) == "FLOPs and bytes moved, all lengths: no polynomial"
