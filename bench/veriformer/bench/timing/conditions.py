"""Clocks of a turn, a fingerprint of the machine, and the state of its devices: clocks, heat and throttling."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

CLOCKS = ("wall", "cpu", "device", "device cold")


Clock = Callable[[Callable[[], Any], int], float]
"""Gives the seconds of one run, over so many runs after each other."""


def clock(name: str) -> Clock:
    """Return the clock of that name.

    wall and cpu: seconds of one run, wall time or this process' own processor time. device: of one run on a GPU, by
    events on its stream. device cold: the same, with the L2 cache flushed before each run.
    """
    if name in ("wall", "cpu"):
        return _processor_clock(time.perf_counter if name == "wall" else time.process_time)
    return _device_clock(cold=name == "device cold")


def _processor_clock(read: Callable[[], float]) -> Clock:
    def measure(run: Callable[[], Any], repeats: int) -> float:
        begin = read()
        for _ in range(repeats):
            run()
        return (read() - begin) / repeats

    return measure


def _device_clock(*, cold: bool) -> Clock:
    flush = torch.empty(256 * 2**20 if cold else 0, dtype=torch.uint8, device="cuda")

    def measure(run: Callable[[], Any], repeats: int) -> float:
        events = []
        for _ in range(repeats):
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
            flush.zero_()
            pair[0].record()
            run()
            pair[1].record()
            events.append(pair)
        torch.cuda.synchronize()
        return sum(float(begin.elapsed_time(end)) for begin, end in events) / 1000 / repeats

    return measure


_SIDE = 512


def versions() -> dict[str, str]:
    """Return the versions that a worker runs with."""
    return {"python": platform.python_version(), "torch": torch.__version__}


def fingerprint(device: str = "cpu") -> str:
    """Return a digest that is equal for runs whose times may be compared: processor, cores, device, interpreter and
    PyTorch.
    """
    parts = [_processor(), str(os.cpu_count()), platform.machine(), *versions().values(), _device(device)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def load() -> float:
    """Return the runnable programs per processor."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def device_state(device: str) -> dict[str, Any]:
    """Return the state of a GPU from NVML; empty for a processor, or where the library is missing.

    temperature in °C, clock in MHz, throttled: whether heat, power or hardware slow the clocks down.
    """
    if not device.startswith("cuda"):
        return {}
    try:
        import pynvml
    except ImportError:
        return {}
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)
        reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        harmless = pynvml.nvmlClocksThrottleReasonGpuIdle | pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting
        return {
            "temperature": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            "clock": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            "throttled": bool(reasons & ~harmless),
        }
    finally:
        pynvml.nvmlShutdown()


def product_rate(device: str, measure: Clock) -> float:
    """Return FLOP/s of a large float32 matrix product: the best of several runs."""
    a, b = (torch.randn(_SIDE, _SIDE, device=device) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * _SIDE**3 / min(measure(lambda: torch.mm(a, b, out=out), 1) for _ in range(10))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _device(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
