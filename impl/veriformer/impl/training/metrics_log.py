"""The loss curve of a run: a line of numbers for each step, and a picture."""

import json
from pathlib import Path

from veriformer.impl.training.trainer import Report


class MetricsLog:
    """Writes each report to `curve.jsonl` in the directory of the run, and draws `curve.svg` at the end."""

    def __init__(self, directory: Path, resumed_at: int = 0) -> None:
        self.path = directory / "curve.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        old = self.path.read_text(encoding="utf-8").splitlines() if resumed_at and self.path.is_file() else []
        self.points = [point for point in map(json.loads, old) if point["step"] <= resumed_at]
        self.path.write_text("".join(f"{json.dumps(point)}\n" for point in self.points), encoding="utf-8")

    def add(self, report: Report) -> None:
        """Write one step."""
        point = {
            "step": report.step,
            "loss": report.loss,
            "norm": report.norm,
            "lr": report.lr,
            "tokens": report.tokens,
        }
        self.points.append(point)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(point)}\n")

    def draw(self) -> None:
        """Draw the loss over the steps."""
        from matplotlib.figure import Figure  # slow to import, and wanted once

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot([p["step"] for p in self.points], [p["loss"] for p in self.points], linewidth=1)
        axes.set_xlabel("step")
        axes.set_ylabel("loss in nats per token")
        axes.grid(alpha=0.3)
        figure.savefig(self.path.with_suffix(".svg"), metadata={"Date": None})
