"""What the documents say of distances, angles and divergence, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained embeddings: it depends on data and training, neither of which is given"

_DECIDED = (
    ("000", "14.1", 450, "for d > 100 most vectors are nearly orthogonal", "near-orthogonality:needs-zero-mean"),
    ("000", "14.1", 450, "cosine is more discriminative", "near-orthogonality:no-more-discriminative"),
    ("001", "14.1", 594, "cosine is more discriminative", "near-orthogonality:no-more-discriminative"),
    ("001", "14.1", 598, "for d > 100 most vectors are nearly orthogonal", "near-orthogonality:needs-zero-mean"),
    ("002", "4.1", 533, "d₂(u, v) = ‖u − v‖", "euclidean-distance:moved"),
    ("002", "4.1", 538, "cos θ = u · v / (‖u‖ ‖v‖)", "cosine-similarity:bounded"),
    ("002", "4.1", 541, "most random vectors are nearly orthogonal", "near-orthogonality:rate"),
    ("002", "4.1", 541, "cosine is more discriminative", "near-orthogonality:no-more-discriminative"),
    ("002", "4.2.1", 559, "A · B = 0.64", "cosine-similarity:worked"),
    ("002", "4.2.1", 561, "‖A‖ ≈ 0.83", "cosine-similarity:worked"),
    ("002", "4.2.1", 562, "‖B‖ ≈ 0.79", "cosine-similarity:worked"),
    ("002", "4.2.1", 564, "0.64 / 0.66 ≈ 0.97", "cosine-similarity:rounded-too-early"),
    ("002", "4.2.1", 566, "values range from −1 to 1", "cosine-similarity:bounded"),
    ("002", "4.2.1", 566, "1 is identical", "cosine-similarity:one-is-not-identical"),
    ("002", "4.2.2", 577, "the squares add up to 0.03", "euclidean-distance:worked"),
    ("002", "4.2.2", 578, "√0.03 ≈ 0.17", "euclidean-distance:worked"),
    ("002", "4.2.2", 584, "cosine is for direction, not magnitude", "cosine-similarity:scaled"),
    ("002", "4.3", 591, "v* = arg max q · v", "inner-product-search:one-length"),
    ("002", "4.3", 594, "this is exactly what attention computes", "inner-product-search:attention-takes-a-mean"),
    ("002", "4.3", 596, "query-key similarity is an inner product", "similarity:distance"),
    ("004", "2.2", 146, "cross entropy is between y and p", "divergence:decomposition"),
    ("004", "4.6", 612, "cross entropy measures the divergence", "divergence:cross-entropy-is-no-divergence"),
    ("004", "4.6", 613, "lower perplexity means better prediction", "divergence:decomposition"),
)

_UNDECIDED = (
    ("002", "4.2.1", 566, '"cat" and "dog" point in nearly the same direction', _MODELS),
    ("002", "4.2.2", 585, "distance is for image features", _MODELS),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
