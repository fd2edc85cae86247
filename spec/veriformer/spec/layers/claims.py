"""What the documents say of layers, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models: it depends on data, training and measure, none of which is given"
_PRACTICE = "a description of practice, which nothing derived could contradict"

_PART_TWO = (
    ("000", "8.1", 35, "W ~ N(0, 2 / (n_in + n_out))", "xavier:compromise"),
    ("000", "11.1", 381, "A_dropped = Dropout(softmax(QKᵀ/√d_k))", "dropout:in-attention"),
    ("000", "11.1", 384, "dropout after the first linear transformation", "feed-forward-dropout:after-the-activation"),
    ("000", "11.1", 386, "FFN(x) = W₂ Dropout(GELU(W₁ x))", "feed-forward-dropout:formula"),
    ("000", "11.4", 440, "y_smooth = (1 − α) y_true + α/V", "label-smoothing:formula"),
    ("000", "11.4", 443, "smoothing prevents overconfident predictions", "label-smoothing:optimum"),
)

# Where the other version of Part 2 makes the same statements: line of 000, line of 001.
_IN_001 = {35: 37, 381: 489, 384: 494, 386: 498, 440: 581, 443: 586}

_DECIDED = (
    *_PART_TWO,
    *(("001", section, _IN_001[line], text, by) for _, section, line, text, by in _PART_TWO),
    ("002", "2.1.1", 143, "Ŷ = X W + b", "mlp-first-layer:formula"),
    ("002", "2.1.1", 148, "L = 1/N Σ |Y_true − Ŷ|²", "mse:formula"),
    ("002", "2.1.1", 154, "∂L/∂W = 2/N Xᵀ (Ŷ − Y_true)", "mse:weight-gradient"),
    ("002", "2.1.1", 158, "∂L/∂b = 2/N Σ (Ŷ − Y_true)", "mse:bias-gradient"),
    ("002", "2.1.1", 178, "Z₁ = X W₁ + b₁, of shape samples × hidden units", "mlp-first-layer:formula"),
    ("002", "2.1.1", 181, "A₁ = σ(Z₁), element by element", "activation:derivatives"),
    ("002", "2.1.1", 184, "Z₂ = A₁ W₂ + b₂, of shape samples × outputs", "mlp:formula"),
    ("002", "2.1.1", 187, "Ŷ = Z₂", "mlp-output-gradient:identity-output"),
    ("002", "2.1.1", 196, "δ₂ = Ŷ − Y_true", "hidden-layer-backward:halved-loss"),
    ("002", "2.1.1", 201, "∂L/∂W₂ = 1/N A₁ᵀ δ₂", "hidden-layer-backward:half-the-gradient"),
    ("002", "2.1.1", 204, "∂L/∂b₂ = 1/N Σ δ₂", "hidden-layer-backward:half-the-gradient"),
    ("002", "2.1.1", 209, "δ₁ = (δ₂ W₂ᵀ) ⊙ σ'(Z₁)", "mlp-hidden-weights:entries"),
    ("002", "2.1.1", 214, "∂L/∂W₁ = 1/N Xᵀ δ₁", "hidden-layer-backward:half-the-gradient"),
    ("002", "2.1.1", 217, "∂L/∂b₁ = 1/N Σ δ₁", "hidden-layer-backward:half-the-gradient"),
    ("002", "2.1.1", 239, "δ₂ is how much an output affects the loss", "hidden-layer-backward:delta-is-not-the-slope"),
    (
        "002",
        "2.1.1",
        240,
        "δ₁ is how much a hidden neuron affects the loss",
        "hidden-layer-backward:delta-is-not-the-slope",
    ),
    ("002", "2.1.1", 245, "the δ carry the error backwards, layer by layer", "mlp-hidden-weights:to-hidden"),
    ("002", "3.1", 435, "W⁽¹⁾ of d_in × d_hidden, W⁽²⁾ of d_hidden × d_out", "mlp:formula"),
    ("002", "3.2", 445, "∂L/∂z⁽²⁾ = ∂L/∂ŷ", "mlp-output-gradient:needs-a-linear-output"),
    ("002", "3.2", 452, "∂L/∂W⁽²⁾ = h⁽¹⁾ᵀ ∂L/∂z⁽²⁾", "mlp-output-weights:entries"),
    ("002", "3.2", 453, "∂L/∂W⁽¹⁾ = xᵀ [(∂L/∂z⁽²⁾ W⁽²⁾ᵀ) ⊙ σ'(z⁽¹⁾)]", "mlp-hidden-weights:entries"),
    ("002", "3.2", 464, "σ' is taken element by element", "activation:vjp"),
    ("002", "7.1", 909, "FFN(x) = GELU(x W₁ + b₁) W₂ + b₂", "feed-forward:formula"),
    ("002", "7.1", 923, "an expansion to 4 d and a contraction", "feed-forward-weights:expansion"),
    ("002", "7.2", 933, "GELU(x) = x Φ(x)", "gelu:formula"),
    ("002", "7.2", 936, "GELU goes gradually from mostly off to mostly on", "gelu:between"),
    ("002", "7.2", 936, "its answer is between 0 and the input", "gelu:between"),
    ("002", "7.2", 940, "the slope of ReLU jumps from 0 to 1 at zero", "activation:derivatives"),
    ("002", "7.2", 940, "GELU is smooth everywhere", "gelu:curvature"),
    ("002", "7.2", 941, "GELU drops inputs at random by their value", "gelu:expectation"),
    ("002", "7.2", 941, "inputs near the mean are more likely to survive", "gelu:nearness-is-not-survival"),
    ("002", "7.2", 946, "Φ(x) is the chance that a normal variable is below x", "gelu:erf-form"),
    ("003", "4", 237, "the sizes of GPT-2", "gpt2-weights:gpt2"),
    ("003", "8", 709, "experts add capacity without as much computation", "mixture-of-experts:capacity"),
    ("003", "8", 708, "only the chosen experts are asked", "mixture-of-experts:formula"),
    ("003", "11", 1192, "the representation is expanded for a while", "feed-forward-weights:expansion"),
    ("003", "11", 1193, "about 2/3 of a model's weights", "feed-forward-weights:not-the-majority-of-a-model"),
    ("003", "11", 1194, "the same transformation at every position", "feed-forward:position-wise"),
    ("003", "11", 1197, "a bottleneck that compresses", "feed-forward:expansion-is-no-bottleneck"),
    ("003", "11", 1203, "d_ffn = 4 d_model", "feed-forward-weights:expansion"),
    ("003", "11", 1205, "GELU, ReLU and SwiGLU are element-wise", "swiglu:no-elementwise-activation"),
    ("003", "11", 1219, "H₁ = X W₁ + b₁", "feed-forward:formula"),
    ("003", "11", 1220, "H₂ = σ(H₁)", "feed-forward:formula"),
    ("003", "11", 1221, "Y = H₂ W₂ + b₂", "feed-forward:formula"),
    ("003", "11", 1228, "each token by itself", "feed-forward:position-wise"),
    ("003", "11", 1229, "a bottleneck structure forces compression", "feed-forward:expansion-is-no-bottleneck"),
    ("003", "11", 1237, "FFN(x) = W₂ σ(W₁ x + b₁) + b₂", "feed-forward:weights-on-the-left"),
    ("003", "11", 1263, "GELU(x) = x Φ(x)", "gelu:formula"),
    ("003", "11", 1264, "GELU(x) = x/2 (1 + erf(x/√2))", "gelu:erf-form"),
    ("003", "11", 1269, "GELU is smooth and differentiable", "gelu:curvature"),
    ("003", "11", 1275, "GELU(x) ≈ x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))", "gelu-tanh:largest-error"),
    ("003", "11", 1285, "SwiGLU(x) = (W₁ x + b₁) ⊙ SiLU(W₂ x + b₂)", "swiglu:no-way-back"),
    ("003", "11", 1299, "SiLU(x) = x σ(x)", "silu:formula"),
    ("003", "11", 1294, "another expansion keeps the count of weights", "swiglu:matching"),
    ("003", "11", 1300, "d_ffn = 8/3 d_model matches the count", "swiglu:third-matrix"),
    ("003", "11", 1314, "expansion: 4 d_model² weights", "feed-forward-weights:expansion"),
    ("003", "11", 1315, "contraction: 4 d_model² weights", "feed-forward-weights:expansion"),
    ("003", "11", 1316, "8 d_model² weights, plus biases", "feed-forward-weights:expansion"),
    ("003", "11", 1320, "GPT-2: 4.7M weights per network", "feed-forward-weights:example"),
    ("003", "11", 1324, "d_model = 768: 4.7M weights", "feed-forward-weights:example"),
    ("003", "11", 1330, "linear in the length, quadratic in the width", "feed-forward-weights:work"),
    ("004", "1.2", 58, "the network acts on each token independently", "feed-forward:position-wise"),
    ("004", "1.2", 61, "FFN(x) = σ(x W₁ + b₁) W₂ + b₂", "feed-forward:formula"),
)

_UNDECIDED = (
    ("000", "8.1", 38, "smaller first weights of queries and keys prevent collapse", _MODELS),
    ("001", "8.1", 41, "smaller first weights of queries and keys prevent collapse", _MODELS),
    ("000", "11.4", 443, "smoothing improves calibration", _MODELS),
    ("001", "11.4", 586, "smoothing improves calibration", _MODELS),
    ("002", "7.1", 916, "the wide layer is a working space for complex computations", _MODELS),
    ("002", "7.2", 940, "gradients flow better through GELU in training", _MODELS),
    ("002", "7.2", 942, "the smooth transition is more expressive", "more than what, and in what sense, is not said"),
    ("002", "7.2", 946, "smoother gradients improve optimization", _MODELS),
    ("003", "8", 707, "some networks are replaced by experts", _PRACTICE),
    ("003", "11", 1187, "the primary source of nonlinear capacity and of memory", _MODELS),
    ("003", "11", 1191, "it injects essential nonlinearity between attention layers", _MODELS),
    ("003", "11", 1227, "an expansion of 4 gives sufficient capacity", _MODELS),
    ("004", "1.2", 64, "the activation is usually ReLU or GELU", _PRACTICE),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
