"""attention.range[fp16-cpu] on transformers:eager: scores beyond the range of the dtype give NaN."""

import torch

from veriformer.verify import load

target = load("transformers:eager").implementation

q = torch.full((1, 1, 1, 4), 200.0, dtype=torch.float16)
r = target.attention(q, q, torch.ones_like(q), scale=1.0)  # type: ignore[attr-defined]
print("observed", r, "exact", 1.0)
raise SystemExit("violated" if r.isnan().any() else 0)
