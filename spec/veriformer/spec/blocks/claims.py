"""What the documents say of blocks, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models: it depends on data, training and measure, none of which is given"

_DECIDED = (
    ("002", "3.4", 510, "h_{l+1} = h_l + α F(h_l)", "scaled-residual:jacobian"),
    ("002", "3.4", 519, "Pre-LN: h_{l+1} = h_l + F(LN(h_l))", "pre-norm-path:one-block"),
    ("002", "3.4", 520, "Post-LN: h_{l+1} = LN(h_l + F(h_l))", "post-norm-block:jacobian"),
    ("002", "3.4", 525, "better gradient flow: no norm scales the path past the branches", "pre-norm-path:any-depth"),
    ("002", "7.1", 900, "h_1 = LayerNorm(x)", "block-first-norm:same-input"),
    ("002", "7.1", 901, "h_2 = x + MultiHeadAttn(h_1, h_1, h_1)", "block-attention:formula"),
    ("002", "7.1", 902, "h_3 = LayerNorm(h_2)", "block-second-norm:by-tokens"),
    ("002", "7.1", 903, "y = h_2 + FFN(h_3)", "block-output:formula"),
    ("002", "7.1", 914, "the network processes each token by itself", "block-second-norm:by-tokens"),
    ("003", "3", 129, "LayerNorm, self-attention, residual", "block-attention:formula"),
    ("003", "3", 130, "LayerNorm, feed-forward network, residual", "block-output:formula"),
    ("003", "7", 509, "the network acts on token representations one by one", "block-second-norm:by-tokens"),
    ("003", "7", 510, "residual connections enable identity mappings", "block-output:skipped-branch"),
    ("003", "7", 564, "X̃ = LayerNorm(X)", "block-attention:formula"),
    ("003", "7", 565, "A = MultiHeadAttention(X̃, X̃, X̃)", "block-attention:formula"),
    ("003", "7", 566, "X' = X + A", "block-attention:formula"),
    ("003", "7", 574, "X̃' = LayerNorm(X')", "block-output:formula"),
    ("003", "7", 575, "F = FFN(X̃')", "block-output:formula"),
    ("003", "7", 576, "X = X' + F", "block-output:formula"),
    ("003", "7", 583, "identity shortcuts keep the gradient from vanishing", "pre-norm-path:constant-direction"),
    ("003", "7", 584, "attention relates tokens, the network transforms features", "block-second-norm:by-tokens"),
    ("003", "9", 986, "O(n² d_model + n d_model²) per layer", "block-costs:operations"),
    ("003", "11", 1331, "the network dominates the cost", "block-costs:not-always-dominant"),
    ("003", "11", 1335, "the network takes O(n d_model d_ffn) = O(n d_model²)", "block-costs:operations"),
    ("004", "1.3", 85, "Y = LayerNorm(X + MHA(X)), Z = LayerNorm(Y + FFN(Y))", "post-norm-block:formula"),
    ("004", "1.3", 85, "each Transformer layer is of this kind", "post-norm-block:two-layers"),
    ("004", "3.3", 382, "gradients bypass nonlinear sublayers", "post-norm-block:no-bypass"),
)

_UNDECIDED = (
    ("000", "14.3", 461, "post-norm can lead to instability in training", _MODELS),
    ("001", "14.3", 620, "post-norm can lead to instability in training", _MODELS),
    ("002", "3.4", 525, "pre-norm trains more stably, and deeper models", _MODELS),
    ("003", "7", 511, "layer norm stabilises and accelerates training", _MODELS),
    ("003", "7", 515, "early layers hold syntax, middle layers meaning, late layers the task", _MODELS),
    ("003", "7", 582, "pre-norm stabilises gradients and enables deeper networks", _MODELS),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
