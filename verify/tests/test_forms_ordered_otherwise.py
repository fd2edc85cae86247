"""Parts in another order, masks that are flags, activations beside another fault, and models that functions build."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.source_files import module_of

HERE = Path(__file__).parent / "forms"


def found(file: str, name: str) -> Recognised:
    return recognise(module_of(HERE / f"{file}.py"), among=[name])


@pytest.mark.whole
def test_a_network_may_be_registered_before_the_attention() -> None:
    (pin,) = found("ordered_otherwise", "EncoderLayer").pins
    assert (pin.operation, pin.everywhere, pin.readings["norm"]) == ("transformer_block", True, "pre")
    assert pin.readings["mask"] == "inverted"


@pytest.mark.whole
def test_a_block_with_relu_and_a_wrong_scale_is_read_by_its_own_activation_and_norms() -> None:
    (pin,) = found("ordered_otherwise", "WideEncoderLayer").pins
    assert (pin.operation, pin.everywhere) == ("transformer_block", False)
    assert (pin.readings["norm"], pin.readings["mask"]) == ("pre", "inverted")


@pytest.mark.whole
@pytest.mark.parametrize(("name", "right"), [("Attention", True), ("WideAttention", False)])
def test_a_mask_that_is_off_by_default_is_a_flag_and_the_other_is_the_mask(name: str, right: bool) -> None:
    (pin,) = found("ordered_otherwise", name).pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", right)
    assert (pin.readings["mask"], pin.readings["causal"]) == ("inverted", "as it is asked")


@pytest.mark.parametrize(("name", "right"), [("build_translation_model", True), ("make_peeking_transformer", False)])
def test_a_model_is_built_by_a_function_of_its_file(name: str, right: bool) -> None:
    (pin,) = found("built_by_functions", name).pins
    assert (pin.operation, pin.form, pin.everywhere) == ("causal_lm", "models/causal_lm", right)


def test_what_builds_no_model_is_not_called() -> None:
    assert found("built_by_functions", "build_tokenizer").unknown == ("build_tokenizer",)


@pytest.mark.whole
def test_a_known_fault_is_named_where_a_narrow_table_hides_it_in_double_precision() -> None:
    thing = module_of(HERE / "ordered_otherwise.py").OwnColumnsPositionalEncoding
    results = check(thing, only=["sinusoidal_encoding.equation"], dtype=["fp64", "fp32"], profile="quick")
    (finding,) = [one for one in results.findings if not one.weight.advice]
    assert "the cosine's exponent is that of its own column" in finding.what
