"""Not a test: processes of Python that are forked from one which has imported PyTorch and the suite.

A fresh interpreter takes three seconds to import them, and a whole run takes three interpreters or more. ``launcher``
starts a server and gives a program to use in the place of ``sys.executable``. It understands ``-c``, ``-m``, a file and
standard input, runs them in a process of their own with its standard streams, folder and environment, hands signals on,
and ends as that process ends. What it does not understand it leaves to the interpreter.

What is the same in all of these processes, and not in fresh ones: modules of the suite are imported already, from where
the server found them, PyTorch has read its variables of the environment, and hashes of text have one seed. Tests about
these, and those that kill whole groups of processes, start fresh ones.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NoReturn

INTERPRETER = sys.executable
ROOTS = [str(Path(__file__).parents[2] / root) for root in ("spec", "impl", "verify", "bench", "reports")]
PRELOADED = (
    *("veriformer.verify.engine.work", "veriformer.verify.mutants.mutation_run"),
    *("veriformer.verify.comparison.server", "veriformer.impl"),
)
FORKED = PRELOADED[:2]
"""Modules of the process that a run's own processes are forked from: one for all runs."""

UNDERSTOOD = ("-B", "-u")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_LAUNCHER = """#!{interpreter} -IS
import marshal, os, signal, socket, struct, sys
words = sys.argv[1:]
while words and words[0] in {understood}:
    del words[0]
if words and words[0].startswith("-") and words[0] not in ("-c", "-m", "-"):
    os.execv({interpreter!r}, [{interpreter!r}, *sys.argv[1:]])
there = socket.socket(socket.AF_UNIX)
there.connect({address!r})
for number in {forwarded}:
    signal.signal(number, lambda number, frame: there.send(bytes([number])))
request = marshal.dumps((words, os.getcwd(), dict(os.environb)))
socket.send_fds(there, [struct.pack("i", len(request))], [0, 1, 2])
there.sendall(request)
nowhere = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(nowhere, number)
status = os.waitstatus_to_exitcode(struct.unpack("i", there.recv(4))[0])
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@contextlib.contextmanager
def launcher() -> Iterator[str]:
    """The path of the program, whose server lasts as long as the context does; of the interpreter where the system has
    no handles of processes."""
    if not hasattr(os, "pidfd_open"):
        yield INTERPRETER
        return
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        address, program = str(Path(folder) / "socket"), Path(folder) / "python"
        numbers = tuple(map(int, FORWARDED))
        program.write_text(
            _LAUNCHER.format(interpreter=INTERPRETER, understood=UNDERSTOOD, forwarded=numbers, address=address)
        )
        program.chmod(0o755)
        command = [INTERPRETER, __file__, address, str(program)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.read(1), "the server did not start"
        try:
            yield str(program)
        finally:
            server.stdin.close()
            server.wait()
            server.stdout.close()


def serve(address: str) -> tuple[Any, list[int]] | None:
    """Fork a process for each request. Returns in that process, with what is asked of it and its standard streams."""
    children: dict[socket.socket, int] = {}
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as selector:
        listening.bind(address)
        listening.listen(64)
        selector.register(listening, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        os.write(1, b"+")
        while True:
            for key, _ in selector.select():
                if key.fileobj == 0:  # who started the server has ended
                    for process in children.values():
                        os.kill(process, signal.SIGKILL)
                    return None
                if key.fileobj is listening:
                    client, _ = listening.accept()
                    header, streams, _, _ = socket.recv_fds(client, 4, 3)
                    if not header:  # it was killed before it said anything
                        client.close()
                        continue
                    request = client.recv(struct.unpack("i", header)[0], socket.MSG_WAITALL)
                    process = os.fork()
                    if not process:
                        for other in (client, *children):
                            other.close()
                        return marshal.loads(request), streams
                    for stream in streams:
                        os.close(stream)
                    children[client] = process
                    selector.register(client, selectors.EVENT_READ)
                    selector.register(os.pidfd_open(process), selectors.EVENT_READ, client)
                elif key.data is None:  # a launcher hands signals on, or has been killed
                    told = key.fileobj.recv(16)  # type: ignore[union-attr]
                    for number in (told or [signal.SIGKILL]) if key.fileobj in children else []:
                        os.kill(children[key.fileobj], number)  # type: ignore[index]
                    if not told:
                        selector.unregister(key.fileobj)
                else:
                    client = key.data
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    _, status = os.waitpid(children.pop(client), 0)
                    with contextlib.suppress(KeyError):
                        selector.unregister(client)
                    with contextlib.suppress(OSError):
                        client.sendall(struct.pack("i", status))
                    client.close()


def become(request: Any, streams: list[int], installed: list[str]) -> None:
    """Run what was asked for in this process, as an interpreter that was started for it."""
    words, folder, environment = request
    # The server has started the process that others are forked from; here it is nobody's child.
    forkserver.ensure_running = forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    option, *words = words or ["-"]
    sys.argv = [option, *words] if option not in ("-c", "-m") else [option, *words[1:]]
    first = {"-m": folder, "-c": "", "-": ""}.get(option, str(Path(option).resolve().parent))
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *installed]
    if option == "-m":
        if not hasattr(sys.modules.get(words[0]), "__path__"):  # of a package another module is run
            sys.modules.pop(words[0], None)
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    source, name = words[0] if option == "-c" else "", "<string>"
    if option == "-":
        source, name = sys.stdin.read(), "<stdin>"
    elif option != "-c":
        source, name = Path(option).read_text(encoding="utf-8"), option
        main.__file__ = option
    sys.modules["__main__"] = main
    exec(compile(source, name, "exec"), vars(main))


def leave(main: Callable[[], None]) -> NoReturn:
    """End with the status that an interpreter would, without taking apart all that was forked."""
    status: Any = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = 0 if end.code is None else end.code
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    installed = sys.path[1:]
    sys.path[:1] = ROOTS
    for module in PRELOADED:
        importlib.import_module(module)
    importlib.import_module("veriformer.workers.processes").prepare(FORKED)
    gc.freeze()
    asked = serve(sys.argv[1])
    if asked is not None:
        sys.executable = sys.argv[2]
        leave(lambda: become(*asked, installed))
