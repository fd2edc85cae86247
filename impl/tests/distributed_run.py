"""Worker of the distributed test: `torchrun distributed_run.py DIRECTORY`."""

import sys
from pathlib import Path

import torch

from tests.training_runs import trainer
from veriformer.impl.training.checkpoint import resume_run, save_run
from veriformer.impl.training.distributed import Team, whole


def flat(t):
    return torch.cat([whole(p.detach()).flatten() for p in t.model.parameters()])


def main(directory):
    torch.set_num_threads(1)
    ddp = Team.join("ddp")
    teams = {"ddp": ddp, "fsdp": Team("fsdp", ddp.rank, ddp.world)}
    results = {}
    for name, team in teams.items():
        t = trainer(size=4, accumulate=2, team=team, dtype=torch.float64, max_norm=0.5)
        reports = [t.step() for _ in range(2)]
        save_run(t, directory / name)
        again = trainer(size=4, accumulate=2, team=team, dtype=torch.float64, max_norm=0.5)
        resume_run(again, directory / name)
        mine, theirs = list(t.run()), list(again.run())
        results[name] = {
            "losses": [r.loss for r in reports + mine],
            "norms": [r.norm for r in reports + mine],
            "tokens": [r.tokens for r in reports + mine],
            "weights": flat(t),
            "resumed": torch.equal(flat(t), flat(again)) and mine == theirs,
        }
    if ddp.rank == 0:
        torch.save(results, directory / "results.pt")
    ddp.leave()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
