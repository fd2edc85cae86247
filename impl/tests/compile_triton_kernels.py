"""Compile the Triton kernels for Hopper, in small tiles, with all options on, and print the name of each."""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from veriformer.impl.attention_backends.flash.function import Kernels, Plan
from veriformer.impl.attention_backends.flash.launch import Launch

HOPPER = GPUTarget("cuda", 90, 32)
TYPES = {torch.float16: "*fp16", torch.float32: "*fp32", torch.int64: "*i64", torch.uint8: "*u8"}


class Compiler(Kernels):
    """Compiles each kernel instead of running it."""

    def _run(self, kernel, grid, blocks, **arguments):
        if blocks is not None:
            arguments |= {"M": blocks.rows, "N": blocks.cols}
        signature, constants = {}, {}
        for index, parameter in enumerate(kernel.params):
            value = arguments[parameter.name]
            if parameter.is_constexpr or (isinstance(value, int) and value == 1 and not parameter.do_not_specialize):
                signature[parameter.name] = "constexpr"
                constants[(index,)] = value
            elif torch.is_tensor(value):
                signature[parameter.name] = TYPES[value.dtype]
            else:
                signature[parameter.name] = "i32" if isinstance(value, int) else "fp32"
        assert triton.compile(ASTSource(kernel, signature, constants), target=HOPPER).asm["cubin"]
        print(kernel.__name__)


def main():
    q, k = torch.empty(2, 4, 40, 24, dtype=torch.float16), torch.empty(2, 2, 48, 24, dtype=torch.float16)
    mask, bias = torch.empty(2, 1, 40, 48, dtype=torch.uint8), torch.empty(1, 4, 40, 48)
    plan = Plan(is_causal=True, window=20, scale=0.1, softcap=3.0, dropout_p=0.1, launch=Launch.square(16))
    kernels = Compiler(plan, q, k, k, bias, mask, torch.zeros(1, dtype=torch.int64))
    o, lse = kernels.forward()
    D = kernels.row_products(o, o)
    kernels.query_gradients(o, lse, D)
    kernels.key_gradients(o, lse, D)
    kernels.bias_gradients(o, lse, D)


if __name__ == "__main__":
    main()
