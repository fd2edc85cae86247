"""Models of models_of_two.py: the decoder sees one token ahead, the other reads leftovers of the call before."""

import torch
from torch import nn


def attended(q, kv, mask):
    scores = (q @ kv.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(mask == 0, -1e4)
    return scores.softmax(-1) @ kv


class Transformer(nn.Module):
    def __init__(self, src_pad_idx, trg_pad_idx, enc_voc_size, dec_voc_size, d_model, max_len, device):
        super().__init__()
        self.src_pad_idx, self.trg_pad_idx = src_pad_idx, trg_pad_idx
        self.read, self.written = nn.Embedding(enc_voc_size, d_model), nn.Embedding(dec_voc_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.first, self.second = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.asked, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, dec_voc_size)

    def forward(self, src, trg):
        places = torch.arange(trg.shape[1])
        causal = torch.tril(torch.ones(len(places), len(places)), 1)
        memory, x = self.read(src), self.written(trg) + self.places(places)
        x = x + self.first(attended(self.asked(x), x, (trg != self.trg_pad_idx)[:, None] * causal))
        x = x + self.second(attended(x, memory, (src != self.src_pad_idx)[:, None]))
        return self.out(x)


class NextTokenLM(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.emb, self.cell = nn.Embedding(vocab_size, d_model), nn.GRU(d_model, d_model, batch_first=True)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, input_ids):
        states, self.state = self.cell(self.emb(input_ids), getattr(self, "state", None))
        return self.out(states[:, -1])
