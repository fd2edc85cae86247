from torch import nn


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, ids):
        return self.table(ids.clamp(max=self.table.num_embeddings - 2))
