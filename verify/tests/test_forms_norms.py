"""Normalisations of public files are read with the constants that they have, and with none where they have none."""

from __future__ import annotations

from pathlib import Path

from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "norms_of_files.py"


def test_a_norm_without_eps_is_right_wherever_the_formula_has_a_value() -> None:
    (pin,) = recognise(module_of(FILE).BareRMSNorm).pins
    assert pin.everywhere
