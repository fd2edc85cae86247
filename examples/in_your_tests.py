"""The suite inside a test file of your own: pytest examples/in_your_tests.py"""

import torch

from veriformer.verify import conformance


class Mine:
    """An implementation is any object with operations of the contract as attributes."""

    @staticmethod
    def softmax(z, dim=-1):
        return torch.softmax(z, dim)


@conformance(Mine, only=["softmax"], dtype=["fp32"])
def test_conformance(row):
    row()
