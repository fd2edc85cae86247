import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, ids):
        return F.one_hot(ids, self.table.num_embeddings).to(self.table.weight.dtype) @ self.table.weight
