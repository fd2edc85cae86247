"""Ranges of the integers in a kernel, from Triton's intermediate representation: where 32 or 64 bits do not hold them.

Each value is an interval; loops run through all of theirs at once. Arguments, and programs of each axis, have intervals
that the caller gives.
"""

import operator
import re
from functools import partial

import torch
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from tests.compile_triton_kernels import TYPES
from veriformer.impl.attention_backends.flash.function import Kernels

_LINE = re.compile(r"\s*%([\w\-]+)(?::\d+)? = ([\w.]+) (.*)")
_LOOP = re.compile(r"%([\w\-]+) = %([\w\-]+) to %([\w\-]+) step")


class Ranges(Kernels):
    """Keeps the representation of each kernel, and its grid, instead of running it."""

    def __init__(self, *given):
        super().__init__(*given)
        self.grids, self.texts = {}, {}

    def _run(self, kernel, grid, blocks, **arguments):
        self.grids[kernel.__name__] = grid
        sizes = {} if blocks is None else {"M": blocks.rows, "N": blocks.cols}
        self.texts[kernel.__name__] = intermediate(kernel, arguments | sizes)


def intermediate(kernel, arguments):
    """Return the text of a kernel before it is made for a GPU, no argument being a constant that is none."""
    signature, constants = {}, {}
    for index, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr:
            signature[parameter.name], constants[(index,)] = "constexpr", value
        elif torch.is_tensor(value):
            signature[parameter.name] = TYPES[value.dtype]
        else:
            signature[parameter.name] = "i32" if isinstance(value, int) else "fp32"
    source, target, context = ASTSource(kernel, signature, constants), GPUTarget("cuda", 90, 32), ir.context()
    backend = make_backend(target)
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options(source.parse_options())
    functions = backend.get_codegen_implementation(options)
    made = source.make_ir(target, options, functions, backend.get_module_map(), context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    return str(stages["ttir"](made, {}))


def overflows(text, arguments, programs):
    """Return the lines whose results leave their integers, for arguments and programs of the given intervals."""
    known, found = dict(arguments), []
    for line in text.splitlines():
        line = line.split(" loc(")[0]
        match = _LINE.match(line)
        if match is None:
            continue
        name, word, rest = match.groups()
        if word == "scf.for":
            loop, low, high = _LOOP.match(rest).groups()
            known[loop] = (known[low][0], max(known[low][1], known[high][1] - 1))
            continue
        kind = re.search(r"\bi(32|64)$|xi(32|64)>$", rest.strip())
        if word not in _RESULTS or kind is None:  # floats, pointers, conditions
            continue
        known[name] = _interval(word, rest, known, programs)
        limit = 2 ** (int(kind[1] or kind[2]) - 1)
        if known[name] is None or not -limit <= known[name][0] <= known[name][1] < limit:
            found.append(f"{known[name]}: {line.strip()}")
    return found


def _interval(word, rest, known, programs):
    """Return the interval of a result, None where that of an operand is not known."""
    if word == "arith.constant":
        value = int(re.match(r"(?:dense<)?(-?\d+)", rest)[1])
        return value, value
    if word == "tt.make_range":
        end, start = (int(re.search(rf"{side} = (\d+)", rest)[1]) for side in ("end", "start"))
        return start, end - 1
    if word in ("tt.get_program_id", "tt.get_num_programs"):
        programs_there = programs["xyz".index(rest[0])]
        return (0, programs_there - 1) if word == "tt.get_program_id" else (1, programs_there)
    given = [known.get(each) for each in re.findall(r"%([\w\-]+)", rest)]
    return None if None in given else _RESULTS[word](given[0], given[-1])


def _ends(function, a, b):
    values = [function(x, y) for x in a for y in b]
    return min(values), max(values)


def _quotient(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


_RESULTS = {
    **dict.fromkeys(("arith.constant", "tt.make_range", "tt.get_program_id", "tt.get_num_programs")),
    **dict.fromkeys(("arith.extsi", "tt.splat", "tt.expand_dims", "tt.broadcast"), lambda a, b: a),
    "arith.addi": partial(_ends, operator.add),
    "arith.subi": partial(_ends, operator.sub),
    "arith.muli": partial(_ends, operator.mul),
    "arith.divsi": partial(_ends, _quotient),
    "arith.remsi": lambda a, b: (min(0, 1 - b[1]) if a[0] < 0 else 0, min(max(a[1], 0), b[1] - 1)),
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""Intervals of results by those of the first and the last operand; constants and programs have none."""
