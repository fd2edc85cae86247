"""``python -m veriformer.bench``."""

from veriformer.bench.cli import bench

bench(prog_name="python -m veriformer.bench")
