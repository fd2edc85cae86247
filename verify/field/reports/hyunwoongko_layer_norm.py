"""LayerNorm of hyunwoongko/transformer: python hyunwoongko_layer_norm.py CLONE

hyunwoongko/transformer at 63286547b9cd, models/layers/layer_norm.py; PyTorch 2 on a CPU.
"""

import sys

import torch

sys.path.insert(0, sys.argv[1])
from models.layers.layer_norm import LayerNorm

norm = LayerNorm(4).half()
for row in ([2.0, 2.0, 2.0, 2.0], [950.0, 3032.0, 840.0, 12.0]):
    x = torch.tensor([row], dtype=torch.float16)
    exact = torch.nn.functional.layer_norm(x.double(), (4,), eps=1e-12)
    print(row, "gives", norm(x).tolist(), "instead of", exact.tolist())
