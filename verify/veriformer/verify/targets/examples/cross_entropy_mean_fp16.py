"""cross_entropy.range[fp16-cpu] on torch: the mean of a hundred losses of a thousand each is inf, not 1000."""

import torch

from veriformer.verify import load

target = load("torch").implementation

logits = torch.tensor([[0.0, -1000.0]], dtype=torch.float16).expand(100, 2)
r = target.cross_entropy(logits, torch.ones(100, dtype=torch.int64), reduction="mean")  # type: ignore[attr-defined]
observed = float(r)
print("observed", observed, "exact", 1000.0)
raise SystemExit("violated" if observed != 1000.0 else 0)
