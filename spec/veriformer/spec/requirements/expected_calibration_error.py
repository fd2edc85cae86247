"""Requirements of the expected calibration error (section 11.2)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements import templates

expected_calibration_error = templates.of("expected_calibration_error")

_EXTRA_BIN = "https://github.com/Lightning-AI/torchmetrics/issues/3510"
_CENTRES = "https://github.com/JonathanWenger/pycalib/issues/4"

REQUIREMENTS = (
    *expected_calibration_error.standard(
        "contract result_dtype equation purity layout refusals sensitivity numpy_numbers long",
        equation=(
            r"$\sum_m \frac{|B_m|}{n} |\mathrm{acc}(B_m) - \mathrm{conf}(B_m)|$ over bins $((m-1)/M, m/M]$ of the "
            "largest probability.",
            _EXTRA_BIN,
            _CENTRES,
        ),
        refusals="Missing tensors, no sample, no class, shapes that do not match, fewer than one bin, bools for "
        "numbers, and probabilities outside $[0, 1]$ are refused.",
    ),
    expected_calibration_error.wrong(
        "edges",
        "A confidence on an edge belongs to the bin below; 0 belongs to the first bin and 1 to the last.",
        "At the edges of 1, 2, 4, 8 bins, which every dtype holds: the formula's value within its bound.",
        "bin at an edge",
        _EXTRA_BIN,
    ),
    expected_calibration_error.wrong(
        "one_bin",
        "With one bin it is the distance between accuracy and mean confidence.",
        "The same within the bound.",
        "wrong weight of a bin",
    ),
    expected_calibration_error.wrong(
        "certain",
        "Who is sure of everything errs by the share of what is wrong; 0 if all is right, whatever the number of bins.",
        "The same within the bound.",
        "confidence that is not the predicted one",
        _EXTRA_BIN,
        _CENTRES,
    ),
    expected_calibration_error.wrong(
        "refinement",
        "Splitting every bin in two never lowers the error, which never exceeds 1.",
        "The same, give or take both bounds.",
        "bins that are not nested",
        _CENTRES,
    ),
    expected_calibration_error.wrong(
        "multiset",
        "The samples are a multiset: their order does not matter, nor their axes, nor listing each of them twice.",
        "The same within the sum of both bounds.",
        "dependence on the order of samples",
    ),
    expected_calibration_error.wrong(
        "ties",
        "Of equally probable classes the lowest is the one predicted.",
        "The formula's value within its bound.",
        "predicted class at ties",
        kind=Kind.EQUATION,
    ),
    expected_calibration_error.numerics(
        "many",
        "The formula holds for any number of samples.",
        "For up to 70000 samples in one bin, more than fp16 can count, the value lies within its bound.",
        "sums in half precision",
    ),
)
