"""kv_cache on transformers:eager: under a window of 1 every update shows all rows that there have been."""

import torch

from veriformer.verify import load

target = load("transformers:eager").implementation

cache = target.kv_cache(1, 1, 9, 2, window=1)  # type: ignore[attr-defined]
row = torch.zeros(1, 1, 1, 2)
observed = [cache.update(row, row)[0].shape[2] for _ in range(3)]
print("observed", observed, "exact", [1, 1, 1])
raise SystemExit("violated" if observed != [1, 1, 1] else 0)
