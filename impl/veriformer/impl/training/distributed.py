"""Several processes that train one model: copies of it (DDP), or shares of it (FSDP2). Started by `torchrun`."""

import os
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from veriformer.impl import checks
from veriformer.impl.models.block import Block

STRATEGIES = ("none", "ddp", "fsdp")
_MOMENT_S = 0.2


@dataclass(frozen=True)
class Team:
    """The processes of a run, and how they share the work."""

    strategy: str = "none"
    rank: int = 0
    world: int = 1

    @classmethod
    def join(cls, strategy: str) -> "Team":
        """Join the processes that `torchrun` started: gloo on a CPU, nccl on a GPU."""
        checks.choice("strategy", strategy, STRATEGIES)
        if strategy == "none":
            return cls()
        if "RANK" not in os.environ:
            checks.raise_for(
                "strategy", "processes started by torchrun", strategy, "run it with torchrun, or use 'none'"
            )
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return cls(strategy, distributed.get_rank(), distributed.get_world_size())

    def leave(self) -> None:
        """Let the other processes go.

        The threads that exchanged tensors need the interpreter's lock once more, to let go of the last of them. Did the
        interpreter end meanwhile, they would take the process down (`terminate called without an active exception`),
        so they are given a moment.
        """
        if self.strategy != "none":
            distributed.destroy_process_group()
            time.sleep(_MOMENT_S)

    def share(self, objective: nn.Module) -> nn.Module:
        """Return the objective as this team computes it."""
        if self.strategy == "ddp":
            return DistributedDataParallel(objective)
        if self.strategy == "fsdp":
            for module in objective.modules():
                if isinstance(module, Block):
                    fully_shard(module)
            fully_shard(objective)
        return objective

    def sum(self, value: float) -> float:
        """Return the sum of a number over all processes."""
        if self.strategy == "none":
            return value
        total = torch.tensor(value, dtype=torch.float64)
        total = total.cuda().float() if torch.cuda.is_available() else total
        distributed.all_reduce(total)
        return float(total)

    def last_of(self, objective: nn.Module, last: bool) -> None:
        """Exchange gradients after this micro-batch only if it is the last of its step."""
        if self.strategy == "ddp":
            objective.require_backward_grad_sync = last  # type: ignore[assignment]
        elif self.strategy == "fsdp":
            objective.set_requires_gradient_sync(last)  # type: ignore[operator]


def whole(x: Tensor) -> Tensor:
    """Return a tensor in one piece, gathered from all processes where it is sharded."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def local(x: Any) -> Any:
    """Return this process's share of a tensor."""
    return x.to_local() if isinstance(x, DTensor) else x


def shared_like(x: Any, p: Tensor) -> Any:
    """Return a share as a sharded tensor like `p`, where `p` is one."""
    if not isinstance(p, DTensor) or not isinstance(x, Tensor):
        return x
    return DTensor.from_local(x, p.device_mesh, p.placements, shape=p.shape, stride=p.stride())
