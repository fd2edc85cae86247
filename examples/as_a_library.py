"""The suite as a library: python examples/as_a_library.py"""

import torch

from veriformer.verify import check


class Mine:
    """An implementation is any object with operations of the contract as attributes."""

    @staticmethod
    def silu(x):
        return x * torch.sigmoid(x)


if __name__ == "__main__":
    results = check(Mine, only=["silu"], dtype=["fp32"])
    print(results.verdict, results.summary)
    for finding in results.findings:
        print(f"{finding.weight}: {finding.what}")
