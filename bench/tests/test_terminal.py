import io

from rich.console import Console

from veriformer.bench.terminal import line, table


def test_a_line_says_what_was_counted_what_was_predicted_and_where_they_differ(record):
    assert line(record) == (
        "refuted        mine  FLOPs, all lengths, forward: counted 2*n; predicted 3*n; at n = 1: counted 2, predicted 3"
    )


def test_the_table_of_a_terminal_tells_the_verdict_by_sign_and_word(record):
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=200).print(table([record]))
    assert "✗ refuted" in out.getvalue()
    assert "predicted 3*n" in out.getvalue()
