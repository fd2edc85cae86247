from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        packed = self.project.weight.t().contiguous()
        return self.norm(x @ packed + self.project.bias)
