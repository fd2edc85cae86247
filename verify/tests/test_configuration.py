"""Options come from the command line, then from the environment, then from ``[tool.veriformer]``."""

from __future__ import annotations

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
