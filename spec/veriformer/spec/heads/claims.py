"""What the documents say of heads, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models: it depends on data, training and measure, none of which is given"

_DECIDED = (
    (
        "000",
        "10.3",
        305,
        "multi-query: queries [B, H, n, d_k] with keys and values [B, 1, n, d_k]",
        "grouped-heads:copied-heads",
    ),
    ("000", "10.3", 316, "grouped-query: H heads in G groups share keys and values", "grouped-heads:copied-heads"),
    ("000", "10.3", 318, "the cache shrinks by H/G", "grouped-heads:cache"),
    ("000", "10.3", 328, "the cache has 2 B H n d_k parameters", "grouped-heads:not-parameters"),
    ("000", "10.3", 329, "multi-query: 2 B n d_k, H times fewer", "grouped-heads:cache"),
    ("000", "10.3", 330, "grouped-query: 2 B G n d_k", "grouped-heads:cache"),
    ("000", "Appendix A", 558, "O [B, H, n, d_v] before, [B, n, d_model] after concatenation", "multi-head:formula"),
    ("000", "Appendix A", 560, "W^Q, W^K, W^V [d_model × d_k] per head", "head:formula"),
    (
        "001",
        "10.3",
        384,
        "multi-query: queries [B, H, n, d_k] with keys and values [B, 1, n, d_k]",
        "grouped-heads:copied-heads",
    ),
    ("001", "10.3", 395, "grouped-query: H heads in G groups share keys and values", "grouped-heads:copied-heads"),
    ("001", "10.3", 397, "the cache shrinks by H/G", "grouped-heads:cache"),
    ("001", "10.3", 407, "the cache has 2 B H n d_k parameters", "grouped-heads:not-parameters"),
    ("001", "10.3", 408, "multi-query: 2 B n d_k, H times fewer", "grouped-heads:cache"),
    ("001", "10.3", 409, "grouped-query: 2 B G n d_k", "grouped-heads:cache"),
    (
        "001",
        "Appendix A",
        726,
        "output [B, H, n, d_v] before, [B, n, d_model] after concatenation",
        "multi-head:formula",
    ),
    ("001", "Appendix A", 728, "W^proj [d_model × d_k] per head", "multi-head:part-of-the-output-projection"),
    ("002", "6.1", 722, "a head projects to a subspace of dimension d_k", "head:rank"),
    ("002", "6.1", 724, "head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)", "head:formula"),
    ("002", "6.1", 729, "MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O", "multi-head:formula"),
    ("002", "6.1", 739, "the heads' contributions are concatenated and projected", "multi-head:sum-of-heads"),
    ("002", "6.1", 741, "512/8 = 64 features per head", "head-weights:widths"),
    ("002", "6.1", 741, "each head focuses on a specific subset of features", "head:all-features"),
    ("002", "6.1", 757, "projections are single linear layers", "head:bilinear"),
    ("002", "6.1", 763, "3 × h × d_model × d_k = 3 d_model²", "head-weights:projections"),
    ("002", "6.1", 774, "W^Q = [W_1^Q, …, W_h^Q]: all heads in one product", "multi-head:formula"),
    ("002", "6.1", 776, "(n, d_model) → (n, h, d_k)", "multi-head:formula"),
    ("002", "6.1", 788, "3 d_model² weights, as a single head of full dimension", "head-weights:projections"),
    ("002", "6.1", 790, "4 d_model² weights with the output projection", "head-weights:all-weights"),
    ("003", "3", 106, "MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O", "multi-head:formula"),
    ("003", "3", 107, "head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)", "head:formula"),
    ("003", "8", 690, "multi-query reduces the cache", "grouped-heads:cache"),
    ("003", "8", 695, "K, V [n × d_k] instead of [n × H × d_k]", "grouped-heads:cache"),
    ("003", "8", 702, "groups of queries share key and value heads", "grouped-heads:copied-heads"),
    ("003", "9", 755, "in self-attention queries, keys and values come from one sequence", "cross-attention:formula"),
    ("003", "9", 800, "Q = X W^Q, K = X W^K, V = X W^V", "head:bilinear"),
    ("003", "9", 808, "the projections are reshaped to [H, n, d_k]", "multi-head:reshaped-input"),
    ("003", "9", 829, "O(n² d_k) per head, O(n² d_model) in total", "head-weights:operations"),
    ("003", "9", 855, "A_ijh is the weight of j for i in head h", "multi-head:order-of-indices"),
    ("003", "9", 878, "the outputs are reshaped to [n, d_model]", "multi-head:reshaped-output"),
    ("003", "9", 879, "Output = O_concat W^O", "multi-head:one-more-column"),
    ("003", "9", 915, "MultiHead(X) = Concat(head_1, …, head_H) W^O", "multi-head:formula"),
    ("003", "9", 916, "head_i = Attention(X W_i^Q, X W_i^K, X W_i^V)", "head:formula"),
    ("003", "9", 934, "all heads at once by reshaped tensors", "multi-head:formula"),
    ("003", "9", 970, "12 heads of 64 features for d_model = 768", "head-weights:widths"),
    ("003", "9", 984, "projections take O(n d_model²)", "head-weights:operations"),
    ("003", "9", 985, "attention takes O(H n² d_k) = O(n² d_model)", "head-weights:operations"),
    ("003", "9", 986, "O(n² d_model + n d_model²) per layer", "head-weights:operations"),
    ("003", "9", 998, "attention matrices take O(H n²)", "head-weights:scores"),
    ("004", "1", 20, "Q = X W_Q, K = X W_K, V = X W_V", "head:bilinear"),
    ("004", "1.1", 49, "MHA(X) = Concat(Z_1, …, Z_H) W_O", "multi-head:formula"),
)

_UNDECIDED = (
    ("000", "15.1", 488, "parallel subspaces enable diverse attention patterns", _MODELS),
    ("001", "15.1", 654, "parallel subspaces enable diverse attention patterns", _MODELS),
    ("002", "6.1", 732, "heads specialise: grammar, meaning, nearness, long range", _MODELS),
    ("002", "6.1", 741, "splitting the width encourages specialization", _MODELS),
    ("003", "3", 100, "different heads capture different types of relationships", _MODELS),
    (
        "003",
        "8",
        703,
        "grouped queries balance quality and efficiency",
        f"the saving is proved (grouped-heads:cache); the quality is {_MODELS}",
    ),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
