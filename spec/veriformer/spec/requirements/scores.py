"""Requirements of softmax, log-sum-exp, probabilities and losses."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import (
    BOTH,
    BOUND,
    CLAIMED,
    POWERS_OF_TWO,
    SUM,
    far_classes,
    fragile,
    leak,
    numerics,
    of,
    wrong,
)

softmax = of("softmax", "1", equation=("1", "21"), gradient=("25",))

_UNSHIFTED = "https://github.com/tenstorrent/tt-metal/pull/10001"

SOFTMAX = softmax.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=r"$p_i = e^{z_i} / \sum_j e^{z_j}$ along any axis; an entry of $-\infty$ has probability 0.",
    gradient=r"$\bar z_i = p_i (\bar p_i - \sum_j p_j \bar p_j)$.",
    refusals="No tensor, an axis that does not exist and an empty axis are refused.",
    batch="Slices along the other axes are independent: each can be computed alone.",
    simplex=wrong(
        r"$p_i > 0$ and $\sum_i p_i = 1$.",
        r"$\hat p_i \ge 0$, since small ones underflow, and $|\sum_i \hat p_i - 1|$ is at most the sum of the bounds "
        r"on the $\hat p_i$.",
        "not a distribution",
    ),
    shift=wrong(
        r"$\mathrm{softmax}(z + c) = \mathrm{softmax}(z)$ for any number $c$.",
        "The same for $z$ and $z + c$ that the dtype holds exactly, within the sum of both bounds.",
        "not invariant to shifts",
        equations=("1", "12"),
    ),
    jacobian=wrong(
        r"The Jacobian $\mathrm{diag}(p) - p p^\top$ annihilates constants: $\sum_i \bar z_i = 0$.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
        equations=("25",),
    ),
    permutation=BOTH.wrong(
        r"$\mathrm{softmax}(\Pi z) = \Pi\, \mathrm{softmax}(z)$ for any permutation $\Pi$.", "dependence on position"
    ),
    range=numerics(
        "The formula has a value for scores of any size.",
        r"Scores up to a quarter of the largest number of the dtype, of both signs and $-\infty$, give finite "
        "probabilities and gradients within their bounds.",
        "overflow",
        _UNSHIFTED,
        "https://github.com/PaddlePaddle/PaddleFleet/pull/1439",
        equations=("1", "12"),
    ),
) + softmax.standard("accuracy")

logsumexp = of("logsumexp", "12")

LOGSUMEXP = logsumexp.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=r"$\mathrm{lse}(z) = \log \sum_i e^{z_i}$ along any axis.",
    gradient=r"$\bar z_i = \bar l\, e^{z_i} / \sum_j e^{z_j}$.",
    refusals="No tensor and an axis that does not exist are refused.",
    batch="Slices along the other axes are independent: each can be computed alone.",
    shift=wrong(
        r"$\mathrm{lse}(z + c) = \mathrm{lse}(z) + c$ for any number $c$.",
        "The same for $z$ and $z + c$ that the dtype holds exactly, within the sum of both bounds.",
        "not equivariant to shifts",
    ),
    between=wrong(
        r"$\max z \le \mathrm{lse}(z) \le \max z + \log n$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
    ),
    range=numerics(
        "The formula has a value for scores of any size.",
        r"Scores up to a quarter of the largest number of the dtype, of both signs and $-\infty$, give finite values "
        "and gradients within their bounds.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
) + logsumexp.standard("accuracy")

cross_entropy = of("cross_entropy", "2", equation=("2", "38", "48"), gradient=("2", "48"))

CROSS_ENTROPY = cross_entropy.standard(
    "contract result_dtype equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=(
        r"$L = -\sum_i y_i \log p_i$, $p = \mathrm{softmax}(z)$, over class indices or probabilities, smoothed to "
        r"$(1 - \alpha) y + \alpha / V$, summed or averaged over the targets that are not ignored.",
        "https://github.com/Lightning-Universe/lightning-bolts/issues/654",
        "https://github.com/NVIDIA/Megatron-LM/issues/7452",
    ),
    gradient=(
        r"$\bar z = w (p \sum_i y_i - y)$ with $w$ the row's share of the cotangent.",
        "https://github.com/linkedin/Liger-Kernel/pull/1298",
    ),
    refusals="Missing tensors, shapes that do not match, no classes, classes outside "
    "$[0, V)$ that are not ignored, probabilities and smoothing outside "
    "$[0, 1]$, and unknown reductions are refused.",
    batch="Losses that are not reduced are independent: each row can be computed alone.",
    conservation=wrong(
        r"With targets that sum to 1 a row's gradient $w (p - y)$ sums to 0.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    ignored=leak(
        "Logits at ignored targets change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is not ignored agrees within the sum of both bounds, smoothed or not.",
        "ignored targets that count",
        "https://github.com/pytorch/pytorch/issues/73205",
        "https://github.com/awslabs/sockeye/issues/200",
        "https://github.com/flagos-ai/FlagGems/pull/73",
        equations=("2", "48"),
    ),
    reductions=SUM.wrong(
        "The sum of the losses is their reduction by sum; the mean times the number of counted targets is too.",
        "wrong denominator",
        "https://github.com/flagos-ai/FlagGems/pull/73",
    ),
    smoothing=wrong(
        r"$L_\alpha = (1 - \alpha) L_0 + \alpha L_1$: the loss is linear in the smoothing.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
        "https://github.com/TimDettmers/ConvE/issues/55",
        "https://github.com/OpenNMT/OpenNMT-py/issues/1463",
        equations=("48",),
    ),
    one_hot=BOTH.wrong(
        "A class target and the probabilities that have all mass on it give the same loss and the same gradient.",
        "two meanings of a target",
        equations=("2", "48"),
    ),
    partition=SUM.wrong(
        "For any split of the rows the sums of the parts add up to the sum of all, and gradients are those of the "
        "parts.",
        "dependence on the batch",
        equations=("2", "38"),
    ),
    range=numerics(
        "The formula has a value for logits of any size.",
        "Large logits of both signs give losses and gradients within their bounds; no finite mean overflows through "
        "its sum.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
        equations=("2", "12"),
    ),
    far_classes=far_classes("8"),
    hidden_classes=fragile(
        r"A logit of $-\infty$ with target mass 0 contributes $0 \log 0 = 0$; with mass above 0 the loss is infinite.",
        "The same; loss and gradient at the other classes lie within their bounds.",
        "zero times infinity",
    ),
    no_target=CLAIMED.fragile(
        "With no target to count, the loss is 0 and so is its gradient, for every reduction.",
        "loss over nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
        "https://github.com/pytorch/pytorch/issues/116349",
    ),
) + cross_entropy.standard("accuracy")

PERPLEXITY = of("perplexity", "41").standard(
    "contract result_dtype equation gradient purity layout refusals sensitivity numpy_numbers long",
    equation=r"$\exp(-\frac{1}{T} \sum_t \log p_{t, x_t})$ over the $T$ targets that are not ignored, of all axes "
    "together.",
    gradient=r"$\bar z_t = \bar L \cdot \mathrm{PPL} \cdot (p_t - y_t) / T$.",
    refusals="Missing tensors, shapes that do not match, no classes, and classes outside "
    "$[0, V)$ that are not ignored are refused.",
    between=wrong(
        r"With $w_t = \max z_t - \min z_t$, the perplexity lies between the geometric means of $1 + (V - 1) e^{-w_t}$, "
        "which is above 1, and of $1 + (V - 1) e^{w_t}$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
    ),
    uniform=wrong(
        "Uniform logits over $V$ classes have perplexity $V$, whatever the targets.",
        "The same within the bound on the result.",
        "wrong base or scale",
    ),
    counted=leak(
        "Rows whose target is ignored may be left out, or hold other logits, and nothing changes.",
        "The same within the sum of both bounds; the gradient at ignored rows is 0.",
        "ignored targets that count",
    ),
    partition=wrong(
        r"$T \log \mathrm{PPL} = \sum_k T_k \log \mathrm{PPL}_k$ for any split into parts of $T_k$ targets.",
        "The same within the sum of the bounds, carried through the logarithm.",
        "mean of means",
        "https://github.com/huggingface/transformers/issues/34138",
        "https://github.com/huggingface/transformers/issues/30975",
    ),
    range=numerics(
        "The formula has a value for logits of any size.",
        "Large logits of both signs, and so many targets that their losses add up beyond fp16, give a finite "
        "perplexity within its bound.",
        "overflow",
        equations=("41", "12"),
    ),
    far_classes=far_classes("$e^8$"),
    no_target=CLAIMED.fragile(
        "With no target to count, the perplexity is 1 and its gradient 0.",
        "perplexity of nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
    ),
)

_TWICE = "https://github.com/TimDettmers/ConvE/issues/55"

SMOOTH_LABELS = of("smooth_labels", "48").standard(
    "contract result_dtype equation purity layout refusals batch sensitivity numpy_numbers long",
    equation=(r"$y_c = (1 - \alpha) [c = t] + \alpha / V$.", _TWICE),
    refusals=r"A missing target, classes outside $[0, V)$, fewer than one class, $\alpha$ outside "
    "$[0, 1]$, and bools for numbers are refused.",
    batch="Rows are independent: each can be smoothed alone.",
    simplex=wrong(
        "Each row is a distribution: not negative, and of sum 1.",
        r"$\hat y \ge 0$, and $|\sum_c \hat y_c - 1|$ is at most the sum of the bounds on the entries.",
        "smoothed targets that do not sum to 1",
        _TWICE,
    ),
    mixture=wrong(
        r"$y_\alpha = (1 - \alpha) y_0 + \alpha y_1$: smoothing is linear between one-hot and uniform.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
    ),
    relabelling=BOTH.wrong(
        "Classes are names: permuting them permutes the columns.",
        "a class that is treated apart",
        "https://github.com/OpenNMT/OpenNMT-py/issues/1463",
    ),
)

TEMPERATURE_SCALE = of("temperature_scale").standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
    equation=r"$p = \mathrm{softmax}(z / T)$ over the last axis.",
    gradient=r"$\bar z = p \odot (\bar p - \sum_j p_j \bar p_j) / T$.",
    refusals="A missing tensor, an empty last axis, and a temperature that is 0, negative, NaN, a bool or missing "
    "are refused.",
    simplex=wrong(
        r"$p_i > 0$ and $\sum_i p_i = 1$ at every temperature.",
        r"$\hat p_i \ge 0$ and $|\sum_i \hat p_i - 1|$ is at most the sum of the bounds on the entries.",
        "probabilities that are none",
    ),
    shift=wrong(
        "A number added to every score changes nothing at any temperature.",
        "For shifts up to a few binades below the largest exact integer, within the sum of both bounds.",
        "dependence on an offset",
    ),
    units=POWERS_OF_TWO.wrong(
        "Scores and temperature have one unit: scaling both by $s > 0$ changes nothing.", "temperature in other units"
    ),
    order=wrong(
        "Temperature keeps the order of the scores, and ties.",
        r"$z_i > z_j$ gives $\hat p_i \ge \hat p_j$, give or take both bounds; equal scores differ by at most both.",
        "order that changes with temperature",
    ),
    conservation=wrong(
        "A gradient sums to 0 along the last axis, since probabilities always sum to 1.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    cold=numerics(
        r"As $T \to 0$ the largest scores share all probability evenly, and what is not largest has none.",
        "At temperatures down to the smallest number of fp64, also below the range of the dtype, within the bound.",
        "overflow at low temperature",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
    hot=numerics(
        r"As $T \to \infty$ all classes become equally probable.",
        r"At temperatures of $2^{40}$ times the spread of the scores every entry is $1/V$ within its bound.",
        "temperature that does not flatten",
    ),
    range=numerics(
        "The formula has a value for scores of any size.",
        "Scores near the largest number of the dtype, of either sign, give result and gradient within their bounds.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
)

_EXTRA_BIN = "https://github.com/Lightning-AI/torchmetrics/issues/3510"
_CENTRES = "https://github.com/JonathanWenger/pycalib/issues/4"

EXPECTED_CALIBRATION_ERROR = of("expected_calibration_error").standard(
    "contract result_dtype equation purity layout refusals sensitivity numpy_numbers long",
    equation=(
        r"$\sum_m \frac{|B_m|}{n} |\mathrm{acc}(B_m) - \mathrm{conf}(B_m)|$ over bins $((m-1)/M, m/M]$ of the "
        "largest probability.",
        _EXTRA_BIN,
        _CENTRES,
    ),
    refusals="Missing tensors, no sample, no class, shapes that do not match, fewer than one bin, bools for "
    "numbers, and probabilities outside $[0, 1]$ are refused.",
    edges=wrong(
        "A confidence on an edge belongs to the bin below; 0 belongs to the first bin and 1 to the last.",
        "At the edges of 1, 2, 4, 8 bins, which every dtype holds: the formula's value within its bound.",
        "bin at an edge",
        _EXTRA_BIN,
    ),
    one_bin=BOUND.wrong(
        "With one bin it is the distance between accuracy and mean confidence.", "wrong weight of a bin"
    ),
    certain=BOUND.wrong(
        "Who is sure of everything errs by the share of what is wrong; 0 if all is right, whatever the number of bins.",
        "confidence that is not the predicted one",
        _EXTRA_BIN,
        _CENTRES,
    ),
    refinement=wrong(
        "Splitting every bin in two never lowers the error, which never exceeds 1.",
        "The same, give or take both bounds.",
        "bins that are not nested",
        _CENTRES,
    ),
    multiset=BOTH.wrong(
        "The samples are a multiset: their order does not matter, nor their axes, nor listing each of them twice.",
        "dependence on the order of samples",
    ),
    ties=wrong(
        "Of equally probable classes the lowest is the one predicted.",
        "The formula's value within its bound.",
        "predicted class at ties",
        kind=Kind.EQUATION,
    ),
    many=numerics(
        "The formula holds for any number of samples.",
        "For up to 70000 samples in one bin, more than fp16 can count, the value lies within its bound.",
        "sums in half precision",
    ),
)

_COUNT = "https://github.com/flagos-ai/FlagGems/pull/73"

# Document 003, section 8.
MASKED_LM_LOSS = of("masked_lm_loss").standard(
    "contract result_dtype equation gradient purity layout refusals sensitivity numpy_numbers long",
    equation=(
        r"$-\frac1M \sum_{i \text{ masked}} \log P(x_i | \text{visible})$ over the $M$ labels that are not "
        "ignored.",
        _COUNT,
    ),
    gradient=r"$\bar z = \bar L (p - y) / M$ at masked positions, 0 elsewhere.",
    refusals="Missing tensors, shapes that do not match, no classes, and labels outside "
    "$[0, V)$ that are not ignored are refused.",
    visible=leak(
        "Logits at visible positions change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is masked agrees within the sum of both bounds.",
        "visible positions that count",
        "https://github.com/pytorch/pytorch/issues/73205",
    ),
    partition=SUM.wrong(
        "For any split into micro-batches the losses of the parts, weighted by how many labels each counts, give the "
        "loss of all.",
        "wrong denominator",
        _COUNT,
    ),
    positions=BOTH.wrong(
        "Nothing is shifted: positions that change places together, logits and labels, change nothing.",
        "logits that score the next label",
    ),
    uniform=BOUND.wrong(r"Equal logits cost $\log V$ whatever the labels.", "wrong base or scale"),
    conservation=wrong(
        "Each row of the gradient sums to 0.",
        r"$|\sum_c \hat{\bar z}_c|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    range=numerics(
        "The formula has a value for logits of any size.",
        "Large logits of both signs give loss and gradient within their bounds; no mean overflows through its sum.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
    far_classes=far_classes("8"),
    no_target=CLAIMED.fragile(
        "With no masked position the loss is 0, and so is its gradient.",
        "mean over nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
    ),
)

# Document 002, section 2.1.1.
MSE_LOSS = of("mse_loss").standard(
    "contract result_dtype equation gradient purity layout refusals sensitivity accuracy long",
    equation=r"$L = \frac{1}{N} \sum_i \|\hat y_i - y_i\|^2$ over the $N$ vectors of the last axis, whose squares "
    "are summed and not averaged; one vector alone is one sample.",
    gradient=r"$\bar{\hat y} = \frac{2}{N} \bar L (\hat y - y)$.",
    refusals="No tensor, shapes or dtypes that differ, and empty arguments are refused.",
    partition=wrong(
        "The loss of all samples is the mean of the losses of any ragged parts, weighted by their numbers of samples.",
        "The same within the sum of all bounds, so weighted.",
        "mean of means",
        "https://github.com/pytorch/torchtitan/pull/2206",
    ),
    distance=wrong(
        r"$L(a, b) = L(b, a) = L(a + c, b + c) = L(s a, s b) / s^2$.",
        "The same for shifts that the dtype holds exactly and powers of two, within the sum of both bounds.",
        "not a squared distance",
    ),
    range=numerics(
        "The loss and its gradient are finite where the formula's are: no sum overflows on the way in half precision.",
        "The same, in fp16, and within the bound of the formula.",
        "overflow in half precision",
    ),
)

REQUIREMENTS = (
    *SOFTMAX,
    *LOGSUMEXP,
    *CROSS_ENTROPY,
    *PERPLEXITY,
    *SMOOTH_LABELS,
    *TEMPERATURE_SCALE,
    *EXPECTED_CALIBRATION_ERROR,
    *MASKED_LM_LOSS,
    *MSE_LOSS,
)
