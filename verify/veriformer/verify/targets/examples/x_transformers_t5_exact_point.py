"""t5_relative_position_bucket.exact_points on x-transformers: a logarithm in fp32 falls short of a whole number."""

import torch

from veriformer.verify import load

target = load("x-transformers").implementation

r = target.t5_relative_position_bucket(torch.tensor([-12]), num_buckets=34, max_distance=27)  # type: ignore[attr-defined]
print("observed", r, "exact", [8 + 3])  # 8 + floor(9 log(12 / 8) / log(27 / 8)), where 27 / 8 = (12 / 8)³
raise SystemExit("violated" if int(r) != 11 else 0)
