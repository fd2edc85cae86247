"""Requirements of layers: norms, activations, networks, dropout, initial weights, embedding and head."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import (
    BITWISE,
    BOTH,
    EXACT,
    FINITE_HALF,
    POWERS_OF_TWO,
    SUM,
    fragile,
    leak,
    numerics,
    of,
    wrong,
)

_BACKPROPAGATION = (
    "https://github.com/rasbt/stat453-deep-learning-ss21/issues/5",
    "https://github.com/kvfrans/notes/issues/5",
)
_GRADIENT = (
    r"$\bar W_2 = h^T \bar y$, $\bar b_2 = \sum_i \bar y_i$; with $\delta = (\bar y W_2^T) \odot \sigma'(z)$ "
    r"$\bar W_1 = x^T \delta$, $\bar b_1 = \sum_i \delta_i$, $\bar x = \delta W_1^T$."
)
_REFUSED = "No tensor, weights and biases that do not fit one another, mixed dtypes and unknown activations are refused"

_HIDDEN_ORDER = BOTH.wrong(
    "Hidden units have no order: permuting them, in all weights alike, changes nothing.", "misaligned hidden units"
)

_HIDDEN_RANGE = FINITE_HALF.numerics(
    "Hidden values beyond the range of a half do no harm where the result is within it.",
    "overflow in half precision",
    "https://github.com/huggingface/transformers/issues/5651",
)

_HIDDEN_LIMITS = numerics(
    "Far from zero an activation has reached its limit, and its slope is a constant.",
    "Result and gradients are finite, and within their bounds, for hidden values before the activation from 40 on.",
    "overflow far from zero",
    "https://github.com/PaddlePaddle/Paddle/pull/79760",
)

MLP = of(
    "mlp", "13", "14", "15", gradient=("16", "17", "18"), hidden_order=("13", "15"), limits=("14", "17", "18")
).standard(
    "contract equation gradient purity layout long refusals batch sensitivity",
    equation=r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of relu, which is the default, sigmoid, tanh, "
    "gelu.",
    gradient=(_GRADIENT, *_BACKPROPAGATION),
    refusals=f"{_REFUSED}.",
    hidden_order=_HIDDEN_ORDER,
    homogeneous=POWERS_OF_TWO.wrong(
        r"Without biases, ReLU lets a positive factor pass: $y(s x) = s\, y(x)$ for $s > 0$.",
        "wrong activation",
        equations=("14", "15"),
    ),
    balance=wrong(
        r"$\langle W_1, \bar W_1 \rangle = \langle x, \bar x \rangle$, since the first layer sees their product alone; "
        r"$\langle W_2, \bar W_2 \rangle = \langle \bar y, y - b_2 \rangle$, since the result is linear in $W_2$.",
        "The same within what the bounds on result and gradients leave to the inner products.",
        "gradient that does not balance",
        equations=("16", "17", "18"),
    ),
    range=_HIDDEN_RANGE,
    limits=_HIDDEN_LIMITS,
)

layer_norm = of("layer_norm", "19")

LAYER_NORM = layer_norm.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=r"$y = \gamma \odot (x - \mu) / \sqrt{\sigma^2 + \varepsilon} + \beta$ with the biased variance of "
    r"the last axis; $\gamma$ and $\beta$ may each be left out.",
    gradient=r"$\bar x = (h - \overline{h} - \hat x\, \overline{h \odot \hat x}) / \sqrt{\sigma^2 + \varepsilon}$ "
    r"with $h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$; $\bar\beta = \sum \bar y$.",
    refusals=r"No tensor, an empty axis, a negative $\varepsilon$, and parameters that are not $[d]$ in the dtype "
    "of $x$ are refused.",
    moments=wrong(
        r"Without parameters a row has mean 0 and variance $\sigma^2 / (\sigma^2 + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their sum and to their mean square.",
        "wrong moments",
        "https://github.com/harvardnlp/annotated-transformer/pull/119",
        "https://github.com/131250208/TPlinker-joint-extraction/issues/37",
    ),
    shift=wrong(
        "Adding a number to all entries of a row changes nothing.",
        "The same for shifts that the dtype holds exactly, within the sum of both bounds.",
        "not invariant to shifts",
    ),
    scale=POWERS_OF_TWO.wrong(
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "epsilon in the wrong place",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
    ),
    odd=BOTH.wrong(r"Without parameters $y(-x) = -y(x)$.", "lost sign"),
    affine=SUM.wrong(
        r"With parameters the result is $\gamma \odot y + \beta$ of the result without; each may come alone.",
        "misplaced parameter",
    ),
    near_eps=wrong(
        r"The formula holds where the variance is as small as $\varepsilon$, which stands inside the root.",
        "Result and gradients of rows with a spread around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
        kind=Kind.EQUATION,
    ),
    constant_rows=fragile(
        r"A constant row gives $\beta$, and its gradient is finite.",
        "The same within the bounds, which grow with the size of the constant.",
        "division by zero",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
        kind=Kind.EQUATION,
    ),
    range=numerics(
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
    ),
    conditioning=fragile(
        "The variance of a row does not depend on its mean.",
        "With a mean of half the digits of the dtype, result and gradient lie within the bounds of the variance in two "
        "passes. Where one pass is claimed, its bounds hold, and that is a deviation.",
        "cancellation",
        "https://github.com/pytorch/pytorch/issues/51102",
        "https://github.com/camlab-ethz/poseidon/issues/6",
        kind=Kind.CONVENTION,
    ),
) + layer_norm.standard("accuracy")

rms_norm = of("rms_norm")

# Document 002, section 3.4.
RMS_NORM = rms_norm.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=r"$y = \gamma \odot x / \sqrt{\overline{x^2} + \varepsilon}$ over the last axis; $\gamma$ may be left "
    "out.",
    gradient=r"$\bar x = (h - \hat x\, \overline{h \odot \hat x}) / \sqrt{\overline{x^2} + \varepsilon}$ with "
    r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$.",
    refusals=r"No tensor, an empty axis, a negative $\varepsilon$, and a weight that is not $[d]$ in the dtype of "
    "$x$ are refused.",
    unit=wrong(
        r"Without a weight a row has mean square $\overline{x^2} / (\overline{x^2} + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their mean square.",
        "wrong moments",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
    ),
    scale=POWERS_OF_TWO.wrong(
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "epsilon in the wrong place",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
    ),
    odd=BOTH.wrong(r"$y(-x) = -y(x)$.", "lost sign"),
    affine=SUM.wrong(
        r"With a weight the result is $\gamma \odot y$ of the result without.",
        "misplaced parameter",
        "https://github.com/vllm-project/vllm/pull/29810",
    ),
    near_eps=wrong(
        r"The formula holds where the mean square is as small as $\varepsilon$, which is added to the mean, inside the "
        "root.",
        "Result and gradients of rows of a size around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
        kind=Kind.EQUATION,
    ),
    range=numerics(
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
        "https://github.com/jingyaogong/minimind/issues/301",
    ),
) + rms_norm.standard("accuracy", accuracy="https://github.com/linkedin/Liger-Kernel/pull/950")

RESIDUAL = of("residual", "4").standard(
    "contract equation gradient purity layout refusals sensitivity numpy_numbers long",
    equation=r"$y = x + s F(x)$, given $F(x)$.",
    gradient=r"$\bar x = \bar y$, untouched, and $\bar F = s \bar y$.",
    refusals="No tensor, shapes or dtypes that differ, and scales that are no number.",
    identity=wrong(
        "Where the branch is zero, or its scale, the input passes as it is.",
        "The same bit for bit; with another branch the result is within its bound.",
        "changed identity",
    ),
    range=FINITE_HALF.numerics(
        "The scaled branch may leave the range of a half where the sum is within it.",
        "overflow in half precision",
        "https://github.com/huggingface/transformers/pull/19229",
    ),
)

_SYMMETRY = BOTH.wrong("$f(x) - f(-x) = x$: what a negative number keeps, its opposite loses.", "wrong gate")

_LIMITS = numerics(
    "Far above zero $f(x) = x$ with slope 1, far below $f(x) = 0$ with slope 0.",
    "Result and gradient are finite, and within the bound of a form of the formula that does not overflow there.",
    "overflow far from zero",
    "https://github.com/PaddlePaddle/Paddle/pull/79760",
)

GELU = of("gelu", "37").standard(
    "contract equation gradient purity layout refusals sensitivity accuracy long",
    equation=(
        r'$y = x \Phi(x) = \frac{x}{2} (1 + \mathrm{erf}(x / \sqrt{2}))$, or, with `approximate="tanh"`, '
        r"$\frac{x}{2} (1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3)))$.",
        "https://github.com/vllm-project/vllm/issues/3411",
    ),
    gradient=r"$\bar x = \bar y (\Phi(x) + x \varphi(x))$, or the slope of the tanh form.",
    refusals="No tensor, and unknown approximations are refused.",
    symmetry=_SYMMETRY,
    limits=_LIMITS,
    tanh_distance=wrong(
        "The two forms differ: by 4.7e-4 near |x| = 2.7, and nowhere by more than 4.74e-4.",
        "The difference of two results is that of the formulas, within the sum of both bounds.",
        "one form for the other",
        "https://github.com/vllm-project/vllm/issues/3411",
    ),
)

# Document 003, stage 6.
SILU = of("silu").standard(
    "contract equation gradient purity layout refusals sensitivity accuracy long",
    equation=r"$y = x \sigma(x) = x / (1 + e^{-x})$.",
    gradient=r"$\bar x = \bar y\, \sigma(x) (1 + x (1 - \sigma(x)))$.",
    refusals="What is no floating-point tensor is refused.",
    symmetry=_SYMMETRY,
    limits=_LIMITS,
)

FEED_FORWARD = of("feed_forward", "36").standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
    equation=(
        r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of gelu, which is the default, relu, sigmoid, "
        "tanh; without training nothing is dropped.",
        "https://github.com/vllm-project/vllm/issues/3411",
    ),
    gradient=(_GRADIENT, *_BACKPROPAGATION),
    refusals=f"{_REFUSED}, and so are probabilities outside [0, 1].",
    batch="Positions are independent: each can be computed alone.",
    hidden_order=_HIDDEN_ORDER,
    range=_HIDDEN_RANGE,
    limits=_HIDDEN_LIMITS,
    dropout=wrong(
        "In training hidden values are dropped, after the activation, each kept with probability $1 - p$ and divided "
        "by it; the gradients go through the same mask, and the biases of the output are never dropped.",
        "The mask is read from a result whose output layer is diagonal; under it result and gradients lie within the "
        "bounds of the formula. How many are kept, and how often neighbours fare alike, is within what chance allows, "
        "but for one run in 1e9; $p = 1$ keeps none.",
        "wrong dropout",
        equations=("47",),
    ),
)

_SWAPPED = "https://github.com/ml-explore/mlx-lm/pull/767"

# Document 003, stage 6.
SWIGLU = of("swiglu").standard(
    "contract equation gradient purity layout refusals batch sensitivity accuracy long",
    equation=(r"$y = (\mathrm{SiLU}(x W_{gate}) \odot x W_{up}) W_{down}$.", _SWAPPED),
    gradient=r"The product rule over the gate $a = \mathrm{SiLU}(x W_{gate})$ and what it lets through, "
    r"$u = x W_{up}$: $\bar u = (\bar y W_{down}^T) \odot a$ and $\bar a = (\bar y W_{down}^T) \odot u$.",
    refusals="No tensor, weights that do not fit one another, and mixed dtypes are refused.",
    value_linear=wrong(
        "The result is linear in $W_{up}$, and not in $W_{gate}$.",
        "The results for two matrices add up to that for their sum, where the dtype holds it exactly, within the sum "
        "of all bounds.",
        "gate and value exchanged",
        _SWAPPED,
    ),
    hidden_order=BOTH.wrong(
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.", "misaligned hidden units"
    ),
    range=FINITE_HALF.numerics(
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "overflow in half precision",
    ),
    limits=numerics(
        "Far from zero the gate has reached its limit: its argument above, 0 below.",
        "Result and gradients are finite, and within their bounds, for gates from 40 on.",
        "overflow far from zero",
        "https://github.com/PaddlePaddle/Paddle/pull/79760",
    ),
)

# Document 003, section 8.
MIXTURE_OF_EXPERTS = of("mixture_of_experts").standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
    equation=r"$y = \sum_{e \in T} p_e E_e(x)$ over the `top_k` experts $T$ with the highest scores $x R$, with "
    "$p$ the softmax of those scores alone, and $E_e$ a feed-forward network with the exact GELU.",
    gradient="The gradient goes through the gates and the chosen experts; through the choice there is none, and "
    "experts that no token chose get zero.",
    refusals="No tensor, weights that do not fit one another, mixed dtypes, and `top_k` below 1 or above the "
    "number of experts are refused.",
    batch="Tokens are independent, without a capacity: each can be computed alone.",
    identical_experts=wrong(
        "Experts that are all the same answer as one alone: the gates of the chosen sum to 1, whoever they are.",
        "The same within the sum of the bounds of the mixture and of the network alone.",
        "gates not renormalised",
        "https://github.com/pytorch/torchtitan/issues/1448",
    ),
    permutation=BOTH.wrong(
        "Experts have no order where no scores tie: permuting them, with the columns of the router, changes nothing.",
        "misrouted tokens",
    ),
    ties=wrong(
        "Of equal scores the lower experts are chosen.",
        "For scores that the dtype computes exactly, result and gradients are within the bounds of that choice.",
        "wrong choice of experts",
    ),
    unchosen=leak(
        "What an expert holds that no token chose changes nothing, and its gradient is zero.",
        "The result is the same within the sum of both bounds; the gradient is zero exactly.",
        "mixed in unchosen experts",
    ),
    choice=wrong(
        "The experts with the highest scores are asked, for scores of any kind.",
        "The same where rounding cannot change the choice.",
        "wrong choice of experts",
    ),
    range=FINITE_HALF.numerics(
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "overflow in half precision",
        "https://github.com/huggingface/transformers/issues/5651",
    ),
)

_CHANCE = "The same but for one run in 1e9."

DROPOUT = of("dropout", "46").standard(
    "contract equation gradient purity layout refusals numpy_numbers",
    equation="Outside training, and with $p = 0$, the result is $x$; with $p = 1$ it is zero.",
    gradient="The gradient is the cotangent outside training, and zero with $p = 1$.",
    refusals="No tensor, probabilities outside [0, 1], also outside training, and bad flags.",
    scale=wrong(
        "In training, which is the default, each entry is 0 or $x / (1 - p)$, and the gradient goes through the same "
        "mask: it is 0 where the entry was dropped and $g / (1 - p)$ where it was kept.",
        "The mask is read from the result; under it result and gradient are within their bounds.",
        "wrong scale",
        equations=("46", "47"),
    ),
    rate=wrong(
        "Each entry is kept with probability $1 - p$.",
        f"{_CHANCE} The share of kept entries is judged by Chernoff's bound.",
        "wrong rate",
    ),
    independence=wrong(
        "Entries are dropped one by one, each independently of all others.",
        f"{_CHANCE} Pairs at several distances along each axis, and pairs alone, are kept alike as often as "
        "chance has it.",
        "entries dropped together",
    ),
    generator=wrong(
        "Equal states of the generator, or of PyTorch's global one, give equal masks for equal shapes, whether or not "
        "gradients are asked for; a state that has moved on gives another mask.",
        f"{_CHANCE}",
        "mask not reproducible",
    ),
)

_RATE = "for one run in 1e9"

XAVIER_NORMAL = of("xavier_normal", "49").standard(
    "contract refusals numpy_numbers",
    refusals="Negative sizes, and what is no integer, are refused.",
    variance=wrong(
        r"Weights have mean 0 and variance $\frac{2}{n_{in} + n_{out}}$.",
        "The sum of squares, and the sum, of many weights lie where those of normal variables do, by Chernoff's bound, "
        f"but {_RATE}.",
        "wrong scale of first weights",
        "https://github.com/pytorch/pytorch/issues/166378",
        "https://github.com/clankur/einygpt/pull/3",
    ),
    normality=wrong(
        "Weights are normally distributed.",
        "The shares of weights within a half, one, two and three deviations, and of positive ones, lie where chance "
        f"has them, but {_RATE}.",
        "wrong distribution of first weights",
    ),
    independence=wrong(
        "Weights are independent of one another.",
        f"Pairs at several distances along both axes agree in sign as often as chance has it, but {_RATE}.",
        "dependent first weights",
    ),
    generator=EXACT.wrong(
        "Equal states of the generator, or of PyTorch's global one, give equal weights; a later one gives others.",
        "weights not reproducible",
    ),
)

TOKEN_EMBEDDING = of("token_embedding", "39").standard(
    "contract equation gradient purity layout long refusals batch sensitivity",
    equation=r"$y_t = E_{\mathrm{id}_t}$, the product of a one-hot row and $E$.",
    gradient=r"$\bar E_v = \sum_{t: \mathrm{id}_t = v} \bar y_t$: repeated tokens add up, and rows not read get "
    "zero.",
    refusals="No tensors, ids that are negative, too large or no integers, and tables that are no matrix are refused.",
    batch="Tokens are looked up one by one.",
    lookup=wrong(
        "A lookup copies: nothing is scaled, added or rounded.",
        "The result equals the rows bit for bit, for ids of any integer dtype.",
        "changed embedding",
        "https://github.com/pytorch/tutorials/issues/2849",
    ),
    repeated=wrong(
        "A token that occurs many times collects all its cotangents, and one that does not occur none.",
        "The sum is within its bound; the gradient of a row that was not read is zero exactly.",
        "lost repetitions",
    ),
    range=numerics(
        "The sum over repeated tokens is finite where its value is, though its parts may not be.",
        "The gradient is finite and within its bound, in fp16.",
        "overflow in half precision",
        "https://github.com/apache/mxnet/issues/17703",
    ),
)

LM_HEAD = of("lm_head", "40").standard(
    "contract equation gradient purity layout refusals batch sensitivity accuracy long",
    equation=(
        r"The logits are $h E^T$, neither scaled nor shifted.",
        "https://github.com/ml-explore/mlx-examples/pull/591",
    ),
    gradient=r"$\bar h = \bar z E$ and $\bar E = \bar z^T h$, summed over all positions.",
    refusals="No tensor, widths that differ, tables that are no matrix, and mixed dtypes.",
    batch="Positions are independent: each can be computed alone.",
    linearity=wrong(
        "Logits are linear in the features: those of a sum are the sum of the logits, and those of zero are zero.",
        "The same for sums that the dtype holds exactly, within the sum of all bounds; zero exactly.",
        "logits not linear",
    ),
    one_hot=BITWISE.wrong("A feature alone reads its column of the table.", "changed logits"),
    range=numerics(
        "Inner products are finite where their value is, though their parts may not be.",
        "Logits are finite and within their bound, in fp16.",
        "overflow in half precision",
    ),
)

REQUIREMENTS = (
    *MLP,
    *LAYER_NORM,
    *RMS_NORM,
    *RESIDUAL,
    *GELU,
    *SILU,
    *FEED_FORWARD,
    *SWIGLU,
    *MIXTURE_OF_EXPERTS,
    *DROPOUT,
    *XAVIER_NORMAL,
    *TOKEN_EMBEDDING,
    *LM_HEAD,
)
