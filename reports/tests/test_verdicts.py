import pytest

from veriformer.reports.runs import label
from veriformer.reports.statuses import STATUS_STYLES
from veriformer.reports.verdicts import State, verdict
from veriformer.spec.requirement import Weight
from veriformer.verify.results import Status


def judged(run):
    return verdict(label([run])[0])


def test_every_status_has_a_sign_a_word_and_a_meaning_of_its_own():
    assert set(STATUS_STYLES) == set(Status)
    for attribute in ("sign", "word", "meaning"):
        assert len({getattr(look, attribute) for look in STATUS_STYLES.values()}) == len(Status)


def test_holds(run, row):
    found = judged(run([row(), row(dtype="fp64"), row("softmax.shift", status=Status.DEVIATION)]))
    assert (found.state, found.caveat) == (State.HOLDS, "")
    assert found.sentence == "Nothing violated: 2 requirements held in 3 of 3 rows."


def test_holding_says_what_was_not_shown(run, row):
    rows = [row(), row("softmax.a", status=Status.VACUOUS), row("softmax.b", status=Status.NOT_PROVIDED)]
    found = judged(run(rows))
    assert found.state is State.HOLDS
    assert found.sentence == "Nothing violated: 1 requirement held in 1 of 3 rows."
    assert found.caveat == "Not shown: 1 vacuous, 1 not provided."


@pytest.mark.parametrize("status", [Status.NOT_PROVIDED, Status.VACUOUS, Status.BLOCKED, Status.NOT_APPLICABLE])
def test_where_nothing_passed_nothing_is_shown(run, row, status):
    found = judged(run([row(status=status)]))
    assert found.state is State.NOTHING
    assert found.sentence.startswith("Too little was shown: 0 of 1 row passed; ")


def test_a_run_that_changes_global_state_says_so(run, row):
    found = judged(run([row()], global_state={"softmax": ["the working directory"]}))
    assert found.state is State.VIOLATED
    assert found.sentence == "Violated: it changes global state (softmax: the working directory)."


def test_advice_violates_nothing_and_is_counted(run, row):
    found = judged(run([row(), row("softmax.refusal", status=Status.ADVICE)]))
    assert (found.state, found.caveat) == (State.HOLDS, "Not shown: 1 advice.")


def test_violations_are_named_up_to_a_number(run, violation, row):
    rows = [violation(f"softmax.law{i}", dtype) for i in range(6) for dtype in ("fp32", "fp16")]
    found = judged(run([row(), *rows]))
    assert found.state is State.VIOLATED
    names = "softmax.law0, softmax.law1, softmax.law2, softmax.law3"
    assert found.sentence == f"6 of 7 requirements violated: {names} and 2 more."


def test_only_what_there_is_counts_among_the_requirements(run, violation, row):
    rows = [row(), violation(), row("gelu.equation", status=Status.NOT_PROVIDED)]
    assert judged(run(rows)).sentence == "1 of 2 requirements violated: softmax.shift."


def test_a_run_with_rows_missing_is_invalid_whatever_passed(run, row):
    found = judged(run([row()], planned=9))
    assert found.state is State.INVALID
    assert "1 of 9 planned rows ran" in found.sentence
    assert "Nothing below may be relied on" in found.sentence
    assert "8 not run" in found.caveat


def test_a_run_in_which_the_suite_broke_is_invalid_and_still_names_violations(run, violation, row):
    found = judged(run([violation(), row("softmax.range", status=Status.HARNESS_ERROR)]))
    assert found.state is State.INVALID
    assert "the suite itself broke in 1 row" in found.sentence
    assert "softmax.shift" in found.sentence


def test_the_command_repeats_the_run(run, row):
    all_dtypes = [row(dtype=name) for name in ("fp64", "fp32", "bf16", "fp16")]
    plain = judged(run(all_dtypes, target="a b.py"))
    assert plain.command == "veriformer verify 'a b.py' --profile quick --seed slug"
    assert judged(run(all_dtypes[:2])).command.endswith("--dtype fp64 fp32")
    assert judged(run([row(device="cuda:1")])).command.endswith("--dtype fp32 --device cuda:1")
    asked = judged(run(all_dtypes, only=["softmax", "24a"], strict=True, partial=True, fail_on=Weight.WEAKNESS))
    assert asked.command.endswith("--seed slug --only softmax 24a --strict --fail-on weakness --partial")
