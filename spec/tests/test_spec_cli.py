"""`veriformer spec`, and the group that finds the commands of the other packages."""

import io
import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import click
import pytest

from veriformer.spec import cli, suite, terminal
from veriformer.spec.cli import SUMMARIES
from veriformer.spec.document import document, in_words, reaches
from veriformer.spec.equation import Equation, Erratum, Evidence, Scope, Source, Step
from veriformer.spec.proofs.indexed import real
from veriformer.spec.proofs.prover import Verdict
from veriformer.spec.registry import select


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIFORMER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def call(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(list(arguments), prog_name="veriformer")
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return run


@pytest.mark.whole
def test_listing(call, cache):
    code, out, _ = call("spec", "20", "24b", "--jobs", "1")
    assert code == 0
    assert "(20) Similarity of a query to keys  4 proved for all n, 1 proved for small n" in out
    assert "Var(QKᵀ) = dₖ σ⁴" in out
    assert "\\" not in out
    assert "2 equations, 10 steps: 8 proved for all n, 2 proved for small n; 8 errata (1 wrong, 6 imprecise" in out
    assert len(list(cache.glob("proofs/*.json"))) == 10


def test_a_derivation_is_shown_step_by_step(call):
    code, out, _ = call("spec", "24b", "--jobs", "1")
    assert code == 0
    places = [
        out.index(x)
        for x in ("from", "where", "if", "then", "1. proved for all", "2. proved", "5. proved for small", "errata")
    ]
    assert places == sorted(places)
    assert "document 002, section 5.2, line 678 of The Mathematics of Transformers: From First Principles" in out
    assert "their means are zero" in out
    assert "5. proved for small n (d_k ≤ 2" in out
    assert "the statement gives 1, the truth is 3" in out


def test_without_a_selection_every_equation_is_one_block(call, monkeypatch):
    monkeypatch.setattr(cli, "select", lambda *names: select("20"))
    code, out, _ = call("spec", "--jobs", "1")
    assert code == 0
    assert "proved for all n  distance" in out
    assert "Formulas of the 1 numbered equations, run by steps: 1 proved for all n" in out
    assert "Vector-Jacobian products of 1 formulas, run by steps: 1 proved for all n" in out
    assert "without a number" not in out
    assert "then" not in out


def test_json_to_standard_output_is_nothing_but_json(call):
    code, out, _ = call("spec", "20", "--json", "-", "--jobs", "1")
    assert code == 0
    (equation,) = json.loads(out)["equations"]
    assert equation["number"] == "20"
    assert equation["statement"] == r"s_i = \mathbf{q}^T \mathbf{k}_i"
    assert [s["status"] for s in equation["steps"]] == ["proved"] * 5
    assert set(equation["steps"][0]) == {
        *("slug", "claim", "scope", "scope_detail", "status", "seconds", "detail", "identities")
    }
    assert equation["scope"] == {"proved for small n": 1, "proved for all n": 4}
    (distance,) = equation["steps"][0]["identities"]
    assert " = " in distance
    assert "Sum(k[" in distance
    assert equation["errata"][0]["kind"] == "convention"
    assert "the truth" not in equation["errata"][0]["evidence"]
    assert equation["errata"][0]["refutes"] is True
    assert equation["costs"]["FLOPs"].startswith("2 B H")
    assert equation["sources"] == [{"document": "002", "section": "5.1", "line": 608}]


def test_json_to_a_file(call, tmp_path):
    file = tmp_path / "new" / "spec.json"
    code, out, _ = call("spec", "20", "--json", str(file), "--jobs", "1")
    assert code == 0
    assert "(20)" in out
    assert json.loads(file.read_text())["schema"] == "veriformer/spec/1"


def test_a_file_that_cannot_be_written(call, tmp_path):
    code, _, err = call("spec", "20", "--json", str(tmp_path), "--jobs", "1")
    assert code == 2
    assert "--json" in err


@pytest.mark.parametrize("selection", ["99", "90-99", "nothing"])
def test_unknown_equations(call, selection):
    code, out, err = call("spec", selection)
    assert code == 2
    assert out == ""
    assert selection in err
    assert "24a, 24b, 25" in err


def equation(steps, errata=()):
    return Equation(
        slug="made-up",
        number=None,
        title="Made up",
        statement="0 = 1",
        sources=(),
        symbols=(),
        steps=steps,
        errata=errata,
    )


FALSE = Step(slug="false", claim="", identity=lambda: [(real("a"), real("b"))])
EMPTY = Step(slug="empty", claim="", identity=lambda: ())
TRUE = Step(slug="true", claim="", identity=lambda: [(real("a") * (real("a") + 1), real("a") ** 2 + real("a"))])
STALE = Erratum(
    slug="stale",
    kind="wrong",
    source=Source("002", "1", 1),
    printed="",
    corrected="",
    counterexample=lambda: Evidence("", 1, 1),
)


@pytest.mark.parametrize(
    ("made_up", "code", "word"),
    [
        (equation((FALSE, TRUE)), 1, "refuted"),
        (equation((EMPTY, TRUE)), 1, "vacuous"),
        (equation((TRUE,)), 0, "proved"),
        (equation((TRUE,), (STALE,)), 1, "stale"),
    ],
)
def test_the_exit_status_tells_whether_everything_holds(call, monkeypatch, made_up, code, word):
    monkeypatch.setattr(cli, "select", lambda *names: (made_up,))
    found, out, _ = call("spec", "made-up", "--jobs", "1")
    assert found == code
    assert word in out


def test_no_cache(call, cache):
    assert call("spec", "24b", "--no-cache", "--jobs", "1")[0] == 0
    assert not cache.exists()


def test_no_such_command(call):
    code, _, err = call("nothing")
    assert code == 2
    assert "spec" in err
    assert "No such command 'nothing'" in err


def entry(name, value):
    return EntryPoint(name=name, value=value, group="veriformer.commands")


def test_packages_that_are_not_installed_cost_no_other(call, monkeypatch):
    entries = [entry("bench", "veriformer.nowhere.cli:bench"), entry("spec", "veriformer.spec.cli:spec")]
    monkeypatch.setattr(cli, "entry_points", lambda group: entries)
    code, out, _ = call("--help")
    assert code == 0
    assert "Not available here" in out
    assert "Equations with their derivations" in out
    for words in ([], ["counts", "impl", "--only", "attention"]):
        code, _, err = call("bench", *words)
        assert code == 2
        assert "veriformer.nowhere" in err
    assert call("spec", "24b", "--jobs", "1")[0] == 0


def test_a_command_is_loaded_when_it_is_called_and_not_before(call, monkeypatch):
    monkeypatch.setattr(cli, "entry_points", lambda group: [entry("extra", "antigravity:nothing")])
    assert call("spec", "24b", "--jobs", "1")[0] == 0
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (click.UsageError("no"), 2)])
def test_sudden_ends(call, monkeypatch, error, code):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(terminal, "with_progress", fail)
    assert call("spec", "24b")[0] == code


@pytest.mark.whole
def test_document_proves_what_it_is_not_told():
    (found,) = document(select("24b"))["equations"]
    assert {s["status"] for s in found["steps"]} == {"proved"}


def test_how_far_steps_reach_is_counted_and_the_worst_comes_first():
    def told(*found):
        steps = [Step(slug=str(k), claim="", identity=list, scope=scope) for k, (_, scope) in enumerate(found)]
        return reaches(steps, lambda s: Verdict(found[int(s.slug)][0], 0.0, ""))

    every, small = ("proved", Scope.ALL), ("proved", Scope.ENUMERATED)
    assert told(every, every) == [("proved for all n", 2)]
    assert told(every, small, ("confirmed", Scope.NUMERIC)) == [
        ("confirmed numerically", 1),
        ("proved for small n", 1),
        ("proved for all n", 1),
    ]
    assert told(every, ("refuted", Scope.ALL))[0] == ("refuted", 1)
    assert told() == [("vacuous", 1)]
    assert in_words(told(every, small)) == "1 proved for all n, 1 proved for small n"


def test_formulas_are_read_without_sympy():
    code = "import sys, veriformer.spec.registry as r; r.equations(); sys.exit('sympy' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


def test_python_m():
    done = subprocess.run(
        [sys.executable, "-m", "veriformer.spec", "99"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 2
    assert "24a" in done.stderr


def test_an_error_of_ours_is_no_verdict(call, monkeypatch):
    def broken(*_):
        raise RuntimeError("ours")

    monkeypatch.setattr(cli, "select", broken)
    code, _, err = call("spec", "20")
    assert code == 3
    assert "RuntimeError: ours" in err
    assert "an error of veriformer itself" in err


def test_the_summaries_are_those_of_the_commands_themselves():
    group = cli.main
    context = click.Context(group)
    for name, summary in SUMMARIES.items():
        command = group.get_command(context, name)
        assert command is not None, name
        told = click.Command(name, help=summary)
        for limit in (40, 70, 200):
            assert told.get_short_help_str(limit) == command.get_short_help_str(limit), name
    assert {*group.list_commands(context)} <= {*SUMMARIES, "spec", "requirements"}


def test_help_loads_no_command(call, monkeypatch):
    monkeypatch.setattr(EntryPoint, "load", lambda entry: pytest.fail(f"{entry.name} was loaded"))
    code, out, _ = call("--help")
    assert code == 0
    assert "Hold an implementation against the published mathematics." in out


def test_a_command_that_is_none_is_not_looked_for_in_all_others(call, monkeypatch):
    monkeypatch.setattr(EntryPoint, "load", lambda entry: pytest.fail(f"{entry.name} was loaded"))
    code, _, err = call("verfy")
    assert code == 2
    assert "did you mean 'verify'?" in err


def test_the_version_is_said(call):
    code, out, _ = call("--version")
    assert code == 0
    assert out.startswith(f"veriformer {suite.version()}")


def test_what_an_encoding_lacks_is_written_as_its_escape(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    cli.write_anything()
    print("QKᵀ ≤ 1")
    stream.flush()
    assert stream.buffer.getvalue().decode("cp1252").strip() == r"QK\u1d40 \u2264 1"


def test_shells_complete_commands_and_load_none(call, monkeypatch):
    monkeypatch.setattr(EntryPoint, "load", lambda entry: pytest.fail(f"{entry.name} was loaded"))
    found = cli.main.shell_complete(click.Context(cli.main), "ver")
    assert [(item.value, item.help) for item in found] == [("verify", SUMMARIES["verify"])]
