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
    """Interface of execnet's channel, as far as it is used."""

    def send(self, item: object) -> None:
        """Send text to the other side."""

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for the next text. Raises EOFError where the other side is gone."""

    def __iter__(self) -> Iterator[Any]: ...


def serve(channel: Channel) -> None:
    """Receive the session, then answer items until the channel closes; an item's own exceptions are answers."""
    session = json.loads(channel.receive())
    channel.send(os.getpid())
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for processes that the items start
    silence()
    work = Deferred(session["work"], session["payload"])
    for text in channel:
        asked = json.loads(text)
        try:
            answer = work.answer(asked["item"], asked["extra"])
        except KeyboardInterrupt:
            return
        with contextlib.suppress(EOFError, OSError):
            channel.send(json.dumps(answer))


class Deferred:
    """The work of a session, made when the first item comes: an error there is an answer as well."""

    def __init__(self, name: str, payload: Any) -> None:
        self._name, self._payload = name, payload
        self._work: Any = None

    def answer(self, item: str, extra: Any) -> dict[str, Any]:
        """Return ``value``, an item's result as JSON, or ``error``, in words. Raises KeyboardInterrupt."""
        try:
            if self._work is None:
                self._work = _made(self._name, self._payload)
            return {"value": json.loads(json.dumps(self._work.run(item, extra), allow_nan=False))}
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return {"error": _told(error)}


def _made(name: str, payload: Any) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)(payload)


def _told(error: BaseException) -> str:
    if getattr(error, "plain", False):  # its message is all that there is to say
        return str(error)
    return "".join(traceback.format_exception(error, limit=-6))


def silence() -> None:
    """Redirect standard output and error to os.devnull; the channel has a descriptor of its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
