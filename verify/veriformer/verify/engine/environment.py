"""The environment of a run: facts that are needed to repeat it, without the machine's name."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch


def environment(device: str) -> dict[str, Any]:
    """Return versions of Python and PyTorch, processor, accelerator, and the flags that change numerical results."""
    cuda = device.startswith("cuda") and torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(terse=True),
        "cpu": _processor(),
        "device": torch.cuda.get_device_name(device) if cuda else device,
        "driver": torch.version.cuda if cuda else None,
        "flags": {
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "flush_denormal": False,
            "num_threads": torch.get_num_threads(),
        },
    }


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
