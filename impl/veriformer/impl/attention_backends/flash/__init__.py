"""FlashAttention in Triton: kernels for GPUs, which Triton's interpreter also runs on the CPU.

Nothing here imports Triton until attention is called: see `availability` and `triton`.
"""
