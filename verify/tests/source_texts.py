"""Recognition of the text of a file, as tests write it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of


def read_pins(text: str) -> dict[str, Pin]:
    """Return what is recognised in a file of this text, by operation."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mine.py"
        file.write_text(text)
        return {pin.operation: pin for pin in recognise(module_of(file)).pins}
