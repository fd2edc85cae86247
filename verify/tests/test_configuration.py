"""Options come from the command line, then from the environment, then from ``[tool.veriformer]``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from veriformer.verify import cli
from veriformer.verify.commands.request import Request

TABLE = '[tool.veriformer]\nprofile = "quick"\ndtype = ["fp32", "bfloat16"]\nstrict = true\njson = "out/results.json"\n'


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say what a command line asks for, beside a table."""

    class Said(Exception):
        pass

    def check(request: Request) -> None:
        raise Said(request)

    def ask(*words: str, table: str = TABLE) -> Request:
        (tmp_path / "pyproject.toml").write_text(table)
        (tmp_path / "part").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "part")
        with pytest.raises(Said) as said:
            cli.verify.main(["mine.py", *words], standalone_mode=False)
        return said.value.args[0]  # type: ignore[no-any-return]

    monkeypatch.setattr(Request, "check", check)
    return ask


def test_a_table_above_says_what_the_line_does_not(asked: Any, tmp_path: Path) -> None:
    request = asked()
    assert (request.profile, request.dtype, request.strict) == ("quick", ("fp32", "bf16"), True)
    assert request.json_file == tmp_path / "out" / "results.json"
    assert request.seed == "slug"


def test_the_environment_goes_before_the_table(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for word, value in {"PROFILE": "thorough", "DTYPE": "fp64 fp16", "STRICT": "0", "MAXFAIL": "3"}.items():
        monkeypatch.setenv(f"VERIFORMER_{word}", value)
    request = asked()
    assert (request.profile, request.dtype, request.strict) == ("thorough", ("fp64", "fp16"), False)


def test_the_line_goes_before_both(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIFORMER_PROFILE", "thorough")
    request = asked("--profile", "default", "--dtype", "fp64", "--no-strict")
    assert (request.profile, request.dtype, request.strict) == ("default", ("fp64",), False)


@dataclass(frozen=True)
class Option:
    """An option by its word: what it says in the table, in the environment and on the line, and what that comes to."""

    word: str
    field: str
    table: tuple[str, Any]
    environment: tuple[str, Any]
    line: tuple[str, Any]
    beside: str = ""


def flag(word: str, field: str) -> Option:
    """An option that is on or off: on in the table, off in the environment, on again where the line can say so."""
    return Option(word, field, ("true", True), ("0", False), (f"--{word}", True))


def path(word: str, field: str, beside: str = "") -> Option:
    """An option that names a file: the table's beside the table, the others' in the working directory."""
    return Option(word, field, ('"a.x"', Path("../a.x")), ("b.x", Path("b.x")), (f"--{word} c.x", Path("c.x")), beside)


OPTIONS = [
    Option("only", "only", ('["a", "b"]', ("a", "b")), ("c d", ("c", "d")), ("--only e f", ("e", "f"))),
    Option("profile", "profile", ('"quick"', "quick"), ("thorough", "thorough"), ("--profile default", "default")),
    Option("jobs", "jobs", ("3", 3), ("4", 4), ("--jobs 5", 5)),
    Option("seed", "seed", ('"one"', "one"), ("2", "2"), ("--seed 3", "3")),
    Option("dtype", "dtype", ('["fp32", "half"]', ("fp32", "fp16")), ("bf16", ("bf16",)), ("--dtype fp64", ("fp64",))),
    Option("timeout", "timeout", ("2.5", 2.5), ("3", 3.0), ("--timeout 4", 4.0)),
    Option("device", "device", ('"cuda"', "cuda"), ("cpu:0", "cpu:0"), ("--device cpu", "cpu")),
    path("waivers", "waiver_file"),
    path("json", "json_file"),
    path("junit", "junit"),
    path("html", "html"),
    path("sarif", "sarif"),
    Option("annotations", "annotated", ("true", True), ("0", False), ("--annotations", True)),
    flag("strict", "strict"),
    Option(
        *("fail-on", "fail_on", ('"imprecise"', "imprecise")),
        *(("unguarded", "unguarded"), ("--fail-on weakness", "weakness")),
    ),
    flag("partial", "partial_accepted"),
    flag("rows", "every_row"),
    flag("exitfirst", "exitfirst"),
    Option("maxfail", "maxfail", ("1", 1), ("2", 2), ("--maxfail 3", 3)),
    flag("last-failed", "last_failed"),
    path("resume", "resume"),
    Option("shard", "shard", ('"1/9"', (1, 9)), ("2/9", (2, 9)), ("--shard 3/9", (3, 9)), 'json = "out.json"'),
    path("balance", "balance", 'shard = "1/9"\njson = "out.json"'),
    Option("scheduler", "scheduler", ('"local"', "local"), ("tcp://a:1", "tcp://a:1"), ("--scheduler b", "b")),
    Option(
        *("files", "files", ('["a.x", "b.x"]', (Path("../a.x"), Path("../b.x")))),
        *(("b.x", (Path("b.x"),)), ("--files c.x b.x", (Path("c.x"), Path("b.x")))),
    ),
]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.word)
def test_the_line_goes_before_the_environment_and_that_before_the_table(
    asked: Any, option: Option, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("a.x", "b.x", "part/b.x", "part/c.x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    table = f"[tool.veriformer]\n{option.word} = {option.table[0]}\n{option.beside}\n"

    def found(*words: str) -> Any:
        value = getattr(asked(*words, table=table), option.field)
        return _relative(value, tmp_path / "part")

    assert found() == option.table[1]
    monkeypatch.setenv(f"VERIFORMER_{option.word.upper().replace('-', '_')}", option.environment[0])
    assert found() == option.environment[1]
    assert found(*option.line[0].split()) == option.line[1]


def _relative(value: Any, folder: Path) -> Any:
    if isinstance(value, tuple):
        return tuple(_relative(one, folder) for one in value)
    return Path(os.path.relpath(value, folder)) if isinstance(value, Path) else value


def test_every_option_is_tried() -> None:
    assert [option.word for option in OPTIONS] == list(cli.verify.words())  # type: ignore[attr-defined]


def test_one_word_stands_for_a_list_of_one(asked: Any) -> None:
    assert asked(table='[tool.veriformer]\nonly = "softmax"\n').only == ("softmax",)


def test_every_option_may_stand_in_the_table() -> None:
    words = {option.opts[-1] for option in cli.verify.params if option.param_type_name == "option"}
    assert {f"--{word}" for word in cli.verify.words()} == words  # type: ignore[attr-defined]
    assert all(option.envvar for option in cli.verify.params if option.param_type_name == "option")


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ('profil = "quick"', "did you mean 'profile'"),
        ('profile = "quik"', "[tool.veriformer]"),
        ("strict = 3", "true or false"),
        ("jobs = true", "jobs"),
        ('jobs = "many"', "pyproject.toml"),
        ('dtype = ["fp33"]', "did you mean 'fp32'"),
        ('device = "cud"', "did you mean 'cuda'"),
        ("= 3", "pyproject.toml"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, named: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.veriformer]\n{table}\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.verify, ["impl"])
    assert done.exit_code == 2
    assert named in done.output


def test_a_value_from_the_environment_that_cannot_be_used_names_its_variable() -> None:
    done = CliRunner(env={"VERIFORMER_JOBS": "many"}).invoke(cli.verify, ["impl"])
    assert done.exit_code == 2
    assert "VERIFORMER_JOBS" in done.output
