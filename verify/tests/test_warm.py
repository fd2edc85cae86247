"""A process that is forked from one with the suite in it ends, says and dies as one of a fresh interpreter does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.warm import INTERPRETER

pytestmark = [
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs handles of processes, which Linux has"),
]
SAYS = (
    "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['WARM'], sys.stdin.read()); print(3, file=sys.stderr)"
)

WAITS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    print(os.getpid(), flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped")
"""


def ran(python: str, words: list[str], folder: Path, said: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [python, *words],
        cwd=folder,
        env={**os.environ, "WARM": "yes"},
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", SAYS, "-x", "y"], "in"),
        (["-u", "-m", "says", "-x"], "in"),
        (["says.py", "y"], "in"),
        ([], "print('from standard input', __name__)"),
        (["-", "y"], "import sys; print(sys.argv, sys.path[0])"),
        (["-I", "-c", "import sys; print(sys.flags.isolated)"], ""),
        (["-c", "raise SystemExit('violated')"], ""),
        (["-c", "1 / 0"], ""),
        (["-c", "import os; os._exit(7)"], ""),
        (["-c", "import os; os.kill(os.getpid(), 11)"], ""),
        (["-c", "import atexit; atexit.register(print, 'left')"], ""),
    ],
)
def test_it_does_what_an_interpreter_does(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text(SAYS)
    assert sys.executable != INTERPRETER
    assert ran(sys.executable, words, tmp_path, said) == ran(INTERPRETER, words, tmp_path, said)


def test_it_starts_with_the_suite_and_starts_others_so(tmp_path: Path) -> None:
    words = ["-c", "import sys; print('veriformer.verify' in sys.modules, sys.executable)"]
    assert ran(sys.executable, words, tmp_path) == (0, f"True {sys.executable}\n", "")


def test_signals_reach_it_and_it_does_not_outlive_who_was_started(tmp_path: Path) -> None:
    for number, told, status in ((signal.SIGTERM, "stopped\n", 0), (signal.SIGKILL, "", -signal.SIGKILL)):
        process = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        identity = int(process.stdout.readline())
        process.send_signal(number)
        assert process.communicate()[0] == told
        assert process.returncode == status
        until = time.monotonic() + 60
        while Path(f"/proc/{identity}").exists():
            assert time.monotonic() < until, "it lives on"
            time.sleep(0.01)
