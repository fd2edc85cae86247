"""Compile the Triton kernels without a GPU, in the tiles that a GPU would run, and print what each takes of one.

A line of JSON for each kernel: the compute capability, dtype, width of the heads, options, and shared memory in bytes,
columns of tensor memory, registers of a thread, and the bytes of local memory that a thread spills into. `--small`
compiles in small tiles; `--write` keeps all of it in `compiled_kernels.json`, which the tests read, with the hash of
the kernels' sources.
"""

import argparse
import hashlib
import itertools
import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from veriformer.impl.attention_backends import flash
from veriformer.impl.attention_backends.flash.decoding import MOST_PIECES, CacheKernels, decoding_blocks
from veriformer.impl.attention_backends.flash.function import Kernels, Plan
from veriformer.impl.attention_backends.flash.launch import Launch, launch

TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
PLAIN = {"is_causal": False, "window": None, "softcap": None, "dropout_p": 0.0}
OPTIONS = {
    "plain": PLAIN,
    "causal": {**PLAIN, "is_causal": True},
    "all": {"is_causal": True, "window": 20, "softcap": 3.0, "dropout_p": 0.1},
}
"""Options of attention that kernels are compiled for; "all" has a mask and a bias as well."""

SHARED = {80: 166_912, 86: 101_376, 89: 101_376, 90: 232_448, 100: 232_448, 120: 101_376}
"""Bytes of shared memory that a program may have, by compute capability."""

TENSOR = 512
"""Columns of tensor memory of a multiprocessor of compute capability 10.0; others have none."""

FILE = Path(__file__).with_name("compiled_kernels.json")
"""Resources of all kernels, of these sources, in the tiles that each card would run."""

FOLDER = Path(flash.__file__).parent
AROUND = {"__init__.py", "availability.py", "differentiable.py", "triton.py"}
"""Files that kernels are called from, and none is compiled from."""

CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
ALIGNED = 16


class Compiler(Kernels):
    """Compiles each kernel for an architecture instead of running it, and keeps what it takes."""

    def __init__(self, capability, *given):
        super().__init__(*given)
        self.target, self.taken = GPUTarget("cuda", capability, 32), {}

    def _run(self, kernel, grid, blocks, **arguments):
        if blocks is not None:
            arguments |= {"M": blocks.rows, "N": blocks.cols}
        signature, constants, aligned = {}, {}, {}
        for index, parameter in enumerate(kernel.params):
            value = arguments[parameter.name]
            if parameter.is_constexpr or (isinstance(value, int) and value == 1 and not parameter.do_not_specialize):
                signature[parameter.name] = "constexpr"
                constants[(index,)] = value
                continue
            if torch.is_tensor(value):
                signature[parameter.name] = TYPES[value.dtype]
            else:
                signature[parameter.name] = "i32" if isinstance(value, int) else "fp32"
            if torch.is_tensor(value) or (
                isinstance(value, int) and value % ALIGNED == 0 and not parameter.do_not_specialize
            ):
                aligned[(index,)] = [["tt.divisibility", ALIGNED]]
        made = triton.compile(
            ASTSource(kernel, signature, constants, aligned), target=self.target, options=self._options(blocks)
        )
        tensor = getattr(made.metadata, "tmem_size", None) or 0
        self.taken[kernel.__name__] = {"shared": made.metadata.shared, "tensor": tensor, **resources(made.asm["cubin"])}


class CacheCompiler(Compiler, CacheKernels):
    """Compiles the kernels of one query per head."""


def resources(cubin):
    """Return the registers of a thread and the bytes of local memory that it spills into."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([CUOBJDUMP, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    found = {name: int(number) for name, number in re.findall(r"(REG|STACK|LOCAL):(\d+)", said)}
    return {"registers": found["REG"], "spilled": found["STACK"] + found["LOCAL"]}


def compiled(capability, dtype, width, options, tiles=None):
    """Compile all kernels of a case; return by the kernel's name what it takes of a GPU."""
    n = 1024
    q, k = torch.empty(2, 4, n, width, dtype=dtype), torch.empty(2, 2, n, width, dtype=dtype)
    some = options == "all"
    mask, bias = (torch.empty(2, 1, n, n, dtype=torch.uint8), torch.empty(1, 4, n, n)) if some else (None, None)
    plan = Plan(**OPTIONS[options], scale=0.1, launch=tiles or launch(width, dtype, False, SHARED[capability]))
    kernels = Compiler(capability, plan, q, k, k, bias, mask, torch.zeros(1, dtype=torch.int64) if some else None)
    o, lse = kernels.forward()
    D = kernels.row_products(o, o)
    kernels.query_gradients(o, lse, D)
    kernels.key_gradients(o, lse, D)
    if some:
        kernels.bias_gradients(o, lse, D)
    return kernels.taken | compiled_for_cache(capability, dtype, width, options, tiles)


def compiled_for_cache(capability, dtype, width, options, tiles=None):
    """Compile the kernels of decoding, of four heads to a group and the most pieces."""
    n = 1024
    q, k = torch.empty(2, 8, 1, width, dtype=dtype), torch.empty(2, 2, n, width, dtype=dtype)
    mask = torch.empty(2, 1, 1, n, dtype=torch.uint8) if options == "all" else None
    blocks = tiles.forward if tiles else decoding_blocks(4, width, dtype)
    settings = {**OPTIONS[options], "is_causal": True, "dropout_p": 0.0}
    plan = Plan(**settings, scale=0.1, launch=Launch(blocks, blocks, blocks, blocks))
    kernels = CacheCompiler(capability, plan, q, k, k, None, mask, None)
    kernels.attend(torch.ones(1, dtype=torch.int64), MOST_PIECES)
    return kernels.taken


def sources():
    """Return the hash of all sources that a kernel is compiled from."""
    files = sorted(file for file in FOLDER.glob("*.py") if file.name not in AROUND)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--capability", type=int, nargs="+", default=[80, 86, 90, 100])
    asked.add_argument("--dtype", nargs="+", choices=DTYPES, default=list(DTYPES))
    asked.add_argument("--width", type=int, nargs="+", default=[64, 128, 256])
    asked.add_argument("--options", nargs="+", choices=OPTIONS, default=["plain", "all"])
    asked.add_argument("--small", action="store_true")
    asked.add_argument("--write", action="store_true")
    said = asked.parse_args()
    tiles, rows = Launch.square(16) if said.small else None, []
    for case in itertools.product(said.capability, said.dtype, said.width, said.options):
        capability, dtype, width, options = case
        for name, taken in compiled(capability, DTYPES[dtype], width, options, tiles).items():
            names = {"kernel": name, "capability": capability, "dtype": dtype, "width": width, "options": options}
            rows.append({**names, **taken})
            print(json.dumps(rows[-1]), flush=True)
    if said.write:
        lines = ",\n  ".join(map(json.dumps, rows))
        text = f'{{"sources": "{sources()}", "triton": "{triton.__version__}", "kernels": [\n  {lines}\n]}}\n'
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
