"""``veriformer bench tune``: tiles of our attention kernels on a GPU."""

from __future__ import annotations

import click

from veriformer.bench.commands.options import refuse


@click.command()
@click.option("--width", "widths", type=click.IntRange(16, 256), multiple=True, help="d; 64, 128 and 256 by default.")
@click.option("--dtype", type=click.Choice(["bfloat16", "float16"]), default="bfloat16", show_default=True)
def tune(widths: tuple[int, ...], dtype: str) -> None:
    """Seek the fastest tiles of our attention kernels on this GPU, as lines for flash/launch.py.

    From the tiles of the table on, each kernel goes to its fastest neighbour (rows, columns, warps or stages changed by
    one step) until none is faster. Tiles in which a kernel is wrong, or does not fit, are left out.

    \b
    Exit status: 0 tuned, 2 no GPU to time on, 130 interrupted, with what was found shown.
    """
    import torch

    if not torch.cuda.is_available():
        refuse("tune: expected a CUDA device, got none; run it on a machine with one")
    from veriformer.bench.tiles import tune as tuned

    click.echo(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {dtype}")
    try:
        for width in widths or (64, 128, 256):
            for one in tuned(width, dtype):
                b = one.blocks
                click.echo(
                    f"{width}: {one.kernel} = Blocks({b.rows}, {b.cols}, {b.warps}, {b.stages})  # {one.tflops:.0f} "
                    f"TFLOP/s, {one.before:.0f} before; {one.tried} tried"
                )
    except KeyboardInterrupt:
        raise SystemExit(130) from None
