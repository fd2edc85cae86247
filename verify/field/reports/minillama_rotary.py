"""The rotary embedding of miniLLAMA: python minillama_rotary.py CLONE

akanyaani/miniLLAMA at 542b3ae89bca, model.py; PyTorch on a CPU.
"""

import sys

import torch

sys.path.insert(0, sys.argv[1])
from model import LLAMA, RotaryEmbedding

sizes = {"hidden_size": 32, "n_embd": 32, "vocab_size": 29, "block_size": 16, "max_len": 16, "n_layer": 2}
heads = {"n_head": 4, "n_local_heads": 4, "n_local_kv_heads": 2, "num_key_value_heads": 2}
others = {"attention_dropout": 0.0, "rope_theta": 10000.0, "eps": 1e-5, "rms_norm_eps": 1e-5}

torch.manual_seed(0)
model = LLAMA({**sizes, **heads, **others}).eval()
ids = torch.randint(1, 29, (2, 6))
with torch.no_grad():
    alone, together = model(ids[:1], ids[:1])[0], model(ids, ids)[0][:1]
print(
    f"logits of the first text alone and beside another: largest difference {float((alone - together).abs().max()):.1e}"
)

rotary = RotaryEmbedding(4)
for batch in (1, 2, 32):
    cos, sin = rotary(torch.zeros(1), torch.arange(3).repeat(batch, 1))
    print(
        f"angle of position 1 in a batch of {batch}: {float(torch.atan2(sin, cos)[1, 0]):.2f} (1 is right, up to turns)"
    )
