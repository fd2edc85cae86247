"""rope.scaling on transformers: a factor below 1 leaves the base as it is."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

x, positions = torch.tensor([[1.0, 1.0, 1.0, 1.0]]), torch.tensor([2])
scaled = target.rope(x, positions, scaling=("ntk", 0.5))  # type: ignore[attr-defined]
plain = target.rope(x, positions)  # type: ignore[attr-defined]
print("observed", scaled, "with another base than", plain)
raise SystemExit("violated" if torch.equal(scaled, plain) else 0)
