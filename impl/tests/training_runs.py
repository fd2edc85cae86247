"""Small runs: the same model, data and plan each time."""

import torch

from veriformer.impl.models import Decoder, llama
from veriformer.impl.training.distributed import Team
from veriformer.impl.training.packing import Batches, pack
from veriformer.impl.training.trainer import Trainer, TrainingConfig

LENGTHS = [3, 9, 1, 7, 5, 2, 12, 4, 6, 8, 3, 5, 10, 2, 7, 4, 6, 9, 1, 8]


def texts():
    source = torch.Generator().manual_seed(11)
    return [torch.randint(1, 19, (n,), generator=source).tolist() for n in LENGTHS * 2]


def trainer(*, size=4, team=None, dtype=torch.float32, dropout=0.0, **plan):
    torch.manual_seed(3)
    config = llama(vocab_size=19, d_model=16, num_layers=2, num_heads=2, num_kv_heads=1, init_std=0.1, dropout=dropout)
    team = team or Team()
    model = Decoder(config.replace(tied=True)).to(dtype)
    batches = Batches(pack(texts(), 12), size, seed=5, rank=team.rank, world=team.world)
    options = {"steps": 6, "warmup_steps": 2, "lr": 1e-2, "max_norm": 1e9} | plan
    return Trainer(model, batches, TrainingConfig(**options), team)
