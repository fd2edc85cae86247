"""Mutations that change the text and not what it says: nothing can notice them."""

EQUIVALENT: dict[str, str] = {
    "formula:layers/gelu.py:gelu_slope:operands:3": "only its square is used",
    "formula:positions/alibi.py:alibi_slopes:dropped:6": "the last number is even, and only odd ones are taken",
    "formula:attention/attention.py:_used:constant:11": "what blanks a query that sees nothing has no weight",
    "formula:attention/attention.py:_drop:constant:3": "only zeros are divided by it",
    "formula:efficient/linear_attention.py:_forward:constant:10": "only zeros are divided by it",
    "formula:layers/mixture_of_experts.py:_gates:constant:2": "NumPy infers the size that is any negative number",
    "formula:optimization/clip_grad_norm.py:global_norm:constant:6": "only zeros are divided by it",
    "formula:generation/expected_calibration_error.py:expected_calibration_error:operands:1": "only its size counts",
    "formula:positions/angles.py:_for_angles:comparison:1": "fp32 is computed in fp32 either way",
    "formula:vectors/entropy.py:kl_divergence:constant:3": "its logarithm is multiplied by 0",
    "formula:vectors/distances.py:euclidean_distance:operands:1": "only its length is taken",
    "statement:generation/beam_search.py:beam-search:number:1": "what is largest is so at twice its size too",
}
"""The name of a mutation, and why it is equivalent."""
