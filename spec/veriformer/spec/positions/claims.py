"""What the documents say of positions, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models: it depends on data, training and measure, none of which is given"

_DECIDED = (
    ("002", "6.2", 797, "sinusoidal encoding provides absolute position information", "sinusoidal-encoding:distinct"),
    ("002", "6.2", 800, "PE(pos, 2i) = sin(pos / 10000^(2i/d_model))", "sinusoidal-encoding:turns"),
    ("002", "6.2", 801, "PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))", "sinusoidal-encoding:turns"),
    ("002", "6.2", 810, "PE(pos + k) is a linear function of PE(pos)", "sinusoidal-shift:linear-shift"),
    ("002", "6.2", 811, "PE_i · PE_j depends only on |pos_i − pos_j|", "sinusoidal-shift:offset-only"),
    ("002", "6.2", 817, "RoPE rotates pairs by position-dependent angles", "rope:complex"),
    ("002", "6.2", 820, "q_m = R_m q", "rope:complex"),
    ("002", "6.2", 820, "q_m = R_m q, with q as a column", "rope:rows-turn-the-other-way"),
    ("002", "6.2", 821, "k_n = R_n k", "rope-relative-position:formula"),
    ("002", "6.2", 828, "R_m is the rotation by m θ_i", "rope:group-law"),
    ("002", "6.2", 833, "θ_i = 10000^(−2i/d_model)", "rope:width-of-a-head"),
    ("002", "6.2", 840, "q_m · k_n depends only on m − n", "rope-relative-position:relative"),
    ("002", "6.2", 841, "rotation matrices preserve vector norms", "rope:norm"),
    ("002", "6.2", 842, "RoPE needs no explicit matrix multiplication", "rope:elementwise"),
    ("002", "6.2", 848, "consecutive pairs of dimensions are rotated, by element-wise operations", "rope:complex"),
    ("002", "6.3", 857, "ALiBi: softmax(QKᵀ/√d_k + bias) V", "alibi:decay"),
    ("002", "6.3", 860, "bias_ij = −m |i − j| with a slope m for each head", "alibi:bias"),
    ("002", "6.3", 869, "linear relationship between position distance and bias", "alibi:bias"),
    ("002", "6.3", 876, "A_ij = q_i · k_j / √d_k + b_rel(i,j)", "t5-bias:formula"),
    ("002", "6.3", 879, "a learned bias based on relative distance", "t5-bias:distance-has-no-sign"),
    ("002", "6.3", 886, "θ_i = α^(−2i/d) · 10000^(−2i/d)", "rope-scaling:base"),
    ("002", "6.3", 886, "base scaling increases the base frequency", "rope-scaling:frequencies-fall"),
    ("002", "6.3", 887, "NTK scaling interpolates frequencies", "rope-scaling:not-interpolated"),
    ("002", "6.3", 888, "base scaling for modest extensions, NTK for extreme length", "rope-scaling:one-method"),
    ("003", "2", 30, "attention is permutation-equivariant", "permutation-equivariance:formula"),
    ("003", "2", 30, "it requires explicit positional encoding", "permutation-equivariance:a-causal-mask-sees-order"),
    ("003", "3", 113, "attention is permutation-equivariant", "permutation-equivariance:formula"),
    ("003", "3", 113, "both orders would be processed identically", "permutation-equivariance:not-identical"),
    ("003", "3", 119, "input = token embedding + positional encoding", "learned-positions:vjp"),
    ("003", "3", 123, "the sum ensures that positions can be distinguished", "learned-positions:same-input"),
    ("003", "6", 368, "the permutation-invariance of attention", "permutation-equivariance:not-invariant"),
    ("003", "6", 396, "X = X_tok + X_pos with X_pos = PE[0:n]", "learned-positions:lookup"),
    ("003", "6", 425, "X_pos[i] = PE[i]", "learned-positions:lookup"),
    ("003", "6", 433, "PE[pos, 2i] = sin(pos / 10000^(2i/d_model))", "sinusoidal-encoding:turns"),
    ("003", "6", 434, "PE[pos, 2i+1] = cos(pos / 10000^(2i/d_model))", "sinusoidal-encoding:turns"),
    ("003", "6", 442, "X = X_tok + X_pos", "learned-positions:lookup"),
    (
        "003",
        "6",
        475,
        "[0.1, −0.3, 0.7, 0.2] + [0.01, 0.02, −0.01, 0.03] = [0.11, −0.28, 0.69, 0.23]",
        "learned-positions:worked",
    ),
    ("003", "6", 495, "without positions both orders look identical", "permutation-equivariance:not-identical"),
    ("003", "8", 713, "RoPE rotates queries and keys by position-dependent angles", "rope:complex"),
    ("003", "8", 714, "ALiBi adds a position-based linear bias to the scores", "alibi:bias"),
    ("003", "9", 750, "outputs permute as inputs do", "permutation-equivariance:formula"),
)

_UNDECIDED = (
    (
        "002",
        "6.2",
        812,
        "sinusoidal encoding can handle longer sequences than in training",
        f"it has a value at every position, but whether a model makes use of it is {_MODELS}",
    ),
    ("002", "6.2", 843, "RoPE extrapolates better than learned embeddings", _MODELS),
    (
        "002",
        "6.3",
        867,
        "ALiBi needs no position embeddings",
        f"the bias has no parameters, but whether something is missed without embeddings is {_MODELS}",
    ),
    ("002", "6.3", 868, "ALiBi extrapolates excellently", _MODELS),
    (
        "002",
        "6.3",
        876,
        "T5 divides its scores by √d_k",
        "a fact about a program: the published one leaves the root out, and starts from smaller weights instead",
    ),
    ("002", "6.3", 887, "NTK scaling gives better long-context performance", _MODELS),
    ("002", "6.3", 888, "modest extensions are 2 to 4 times", _MODELS),
    ("003", "6", 465, "the rows of positions 0 to 3", "example values of learned rows, which could be any"),
    (
        "003",
        "6",
        484,
        "positions are a slice of a table [2048, 768]",
        "a choice of size; line 242 has 1,024 positions for a model of the same width and vocabulary",
    ),
    (
        "003",
        "6",
        496,
        "longer texts get truncated",
        "a custom; mathematics only says that a learned table has no row for them",
    ),
    (
        "003",
        "8",
        715,
        "learned against sinusoidal positions: trainable vectors or fixed functions",
        "a distinction of two kinds, not a statement",
    ),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
