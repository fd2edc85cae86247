"""The process that does items one after another in its main thread, so that signals reach them."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Protocol


class Channel(Protocol):
    """What is used of execnet's channel."""

    def send(self, item: object) -> None:
        """Send text to the other side."""

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for the next text. Raises EOFError where the other side is gone."""

    def __iter__(self) -> Iterator[Any]: ...


def serve(channel: Channel) -> None:
    """Be told the session, then do items until the channel is closed; an item's own exceptions are answers."""
    session = json.loads(channel.receive())
    channel.send(os.getpid())
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for processes that the items start
    _silence()
    work = None
    for text in channel:
        try:
            if work is None:
                work = _made(session["work"], session["payload"])
            asked = json.loads(text)
            answer = json.dumps({"value": work.run(asked["item"], asked["extra"])}, allow_nan=False)
        except KeyboardInterrupt:
            return
        except BaseException as error:
            answer = json.dumps({"error": _told(error)})
        with contextlib.suppress(EOFError, OSError):
            channel.send(answer)


def _made(name: str, payload: Any) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)(payload)


def _told(error: BaseException) -> str:
    if getattr(error, "plain", False):  # its message is all that there is to say
        return str(error)
    return "".join(traceback.format_exception(error, limit=-6))


def _silence() -> None:
    """Whatever an implementation prints goes nowhere; the channel has a descriptor of its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
