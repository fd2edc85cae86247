"""Recognition of the text of a file, as tests write it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.source_files import module_of


def recognise_text(text: str) -> Recognised:
    """Return what is recognised in a file of this text."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mine.py"
        file.write_text(text)
        return recognise(module_of(file))


def read_pins(text: str) -> dict[str, Pin]:
    """Return the pins of a file of this text, by operation."""
    return {pin.operation: pin for pin in recognise_text(text).pins}
