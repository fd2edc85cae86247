"""A run as a directory: stopped after any step, it goes on as if it had never stopped, to the last bit."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from veriformer.impl import checks
from veriformer.impl.models.saving import save_model, saved_config, saved_state
from veriformer.impl.training.distributed import local, shared_like, whole
from veriformer.impl.training.trainer import Trainer

WEIGHTS = "model.safetensors"


def save_run(trainer: Trainer, directory: str | Path) -> None:
    """Write weights (safetensors, whole), and for each process its optimizer, generators, scale and data position.

    Files are written beside their places and then moved there, so that a run that dies while writing leaves the older
    checkpoint whole.
    """
    path, team = Path(directory), trainer.team
    path.mkdir(parents=True, exist_ok=True)
    state = {name: whole(x) for name, x in trainer.model.state_dict().items()}
    if team.rank == 0:
        save_model(trainer.model, path / "new.safetensors", state)
    torch.save(_progress(trainer), path / f"new-{team.rank}.pt")
    _meet(trainer)  # all is written
    if team.rank == 0:
        os.replace(path / "new.safetensors", path / WEIGHTS)
    os.replace(path / f"new-{team.rank}.pt", path / f"run-{team.rank}.pt")
    _meet(trainer)  # all is in its place: whoever returns may read it


def _meet(trainer: Trainer) -> None:
    if trainer.team.strategy != "none":
        distributed.barrier()


def resume_run(trainer: Trainer, directory: str | Path) -> None:
    """Bring a new trainer, made as the saved one was, to where that stood.

    Raises `ValueError` where the model, the way of training or the number of processes differ.
    """
    path = Path(directory)
    config, _ = saved_config(path / WEIGHTS)
    _same("model", trainer.model.config, config)
    run: dict[str, Any] = torch.load(path / f"run-{trainer.team.rank}.pt", weights_only=True, map_location="cpu")
    _same("config", dataclasses.asdict(trainer.config), run["config"])
    _same("team", [trainer.team.strategy, trainer.team.world], run["team"])
    _load_weights(trainer, path / WEIGHTS)
    _load_optimizer(trainer, run["optimizer"])
    trainer.scaler.load_state_dict(run["scaler"])
    trainer.batches.load_state_dict(run["batches"])
    trainer.step_count = run["step"]
    torch.set_rng_state(run["generators"][0])
    if len(run["generators"]) > 1:
        torch.cuda.set_rng_state(run["generators"][1])


def _progress(trainer: Trainer) -> dict[str, Any]:
    optimizer = trainer.optimizer.state_dict()
    optimizer["state"] = {i: {key: local(x) for key, x in s.items()} for i, s in optimizer["state"].items()}
    generators = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if trainer.device.type == "cuda" else [])]
    return {
        "step": trainer.step_count,
        "config": dataclasses.asdict(trainer.config),
        "team": [trainer.team.strategy, trainer.team.world],
        "optimizer": optimizer,
        "scaler": trainer.scaler.state_dict(),
        "batches": trainer.batches.state_dict(),
        "generators": generators,
    }


@torch.no_grad()
def _load_weights(trainer: Trainer, path: Path) -> None:
    """Load into every process its own shard of the weights."""
    state = saved_state(path)
    for name, p in trainer.model.state_dict().items():
        if hasattr(p, "device_mesh"):
            whole_tensor = torch.distributed.tensor.distribute_tensor(
                state[name].to(p.device), p.device_mesh, p.placements
            )
            p.copy_(whole_tensor)
        else:
            p.copy_(state[name])


def _load_optimizer(trainer: Trainer, saved: dict[str, Any]) -> None:
    params = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    saved["state"] = {
        i: {key: shared_like(x, params[i]) for key, x in state.items()} for i, state in saved["state"].items()
    }
    trainer.optimizer.load_state_dict(saved)


def _same(name: str, mine: object, saved: object) -> None:
    if mine != saved:
        checks.raise_for(name, f"that of the saved run, {saved}", mine, "resume a run as it was started")
