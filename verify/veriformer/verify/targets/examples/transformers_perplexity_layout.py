"""perplexity.layout on transformers: logits whose rows do not follow one another are refused."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

logits = torch.zeros(2, 3, 4).transpose(0, 1)
r = target.perplexity(logits, torch.zeros(3, 2, dtype=torch.int64))  # type: ignore[attr-defined]
observed = float(r)
print("observed", observed, "exact", 4.0)
raise SystemExit(0)
