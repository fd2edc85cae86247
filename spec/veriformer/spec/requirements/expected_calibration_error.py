"""Requirements of the expected calibration error (section 11.2)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

_NAME = "expected_calibration_error"
_EXTRA_BIN = ("https://github.com/Lightning-AI/torchmetrics/issues/3510",)
_CENTRES = ("https://github.com/JonathanWenger/pycalib/issues/4",)

REQUIREMENTS = (
    templates.contract(_NAME),
    templates.result_dtype(_NAME),
    templates.equation(
        _NAME,
        (),
        r"$\sum_m \frac{|B_m|}{n} |\mathrm{acc}(B_m) - \mathrm{conf}(B_m)|$ over bins $((m-1)/M, m/M]$ of the largest "
        "probability.",
        (*_EXTRA_BIN, *_CENTRES),
    ),
    templates.purity(_NAME),
    templates.layout(_NAME),
    *templates.refusals(
        _NAME,
        "Missing tensors, no sample, no class, shapes that do not match, fewer than one bin, bools for numbers, and "
        "probabilities outside $[0, 1]$ are refused.",
    ),
    templates.sensitivity(_NAME),
    templates.numpy_numbers(_NAME),
    templates.long(_NAME),
    templates.law(
        _NAME,
        "edges",
        "A confidence on an edge belongs to the bin below; 0 belongs to the first bin and 1 to the last.",
        "At the edges of 1, 2, 4, 8 bins, which every dtype holds: the formula's value within its bound.",
        "bin at an edge",
        precedents=_EXTRA_BIN,
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "one_bin",
        "With one bin it is the distance between accuracy and mean confidence.",
        "The same within the bound.",
        "wrong weight of a bin",
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "certain",
        "Who is sure of everything errs by the share of what is wrong; 0 if all is right, whatever the number of bins.",
        "The same within the bound.",
        "confidence that is not the predicted one",
        precedents=(*_EXTRA_BIN, *_CENTRES),
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "refinement",
        "Splitting every bin in two never lowers the error, which never exceeds 1.",
        "The same, give or take both bounds.",
        "bins that are not nested",
        precedents=_CENTRES,
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "multiset",
        "The samples are a multiset: their order does not matter, nor their axes, nor listing each of them twice.",
        "The same within the sum of both bounds.",
        "dependence on the order of samples",
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "ties",
        "Of equally probable classes the lowest is the one predicted.",
        "The formula's value within its bound.",
        "predicted class at ties",
        kind=Kind.EQUATION,
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "many",
        "The formula holds for any number of samples.",
        "For up to 70000 samples in one bin, more than fp16 can count, the value lies within its bound.",
        "sums in half precision",
        kind=Kind.NUMERICS,
        weight=Weight.FRAGILE,
    ),
)
