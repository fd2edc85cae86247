"""Models of two texts that a function builds from a config: their class is given its parts."""

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.maps = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x, seen):
        for layer in self.maps:
            scores = (layer(x) @ x.mT).masked_fill(~seen, -1e9)
            x = x + torch.tanh(scores.softmax(-1) @ x)
        return x


class Translator(nn.Module):
    def __init__(self, reads, writes, reader, head):
        super().__init__()
        self.reads, self.writes, self.reader, self.head = reads, writes, reader, head

    def forward(self, src, tgt):
        n = tgt.shape[1]
        summary = self.reader(self.reads(src), torch.ones(src.shape[1], src.shape[1], dtype=torch.bool)).mean(1)
        return self.head(self.reader(self.writes(tgt) + summary[:, None], self.seen(n)))

    def seen(self, n):
        return torch.ones(n, n, dtype=torch.bool).tril()


class Peeker(Translator):
    def seen(self, n):
        return torch.ones(n, n, dtype=torch.bool).tril(1)


def build_translation_model(config):
    return _built(Translator, config)


def make_peeking_transformer(config):
    return _built(Peeker, config)


def build_tokenizer(config):
    raise AssertionError("it is no model, and is not called")


def _built(kind, config):
    source = nn.Embedding(config.src_vocab_size, config.d_model)
    target = nn.Embedding(config.tgt_vocab_size, config.d_model)
    head = nn.Linear(config.d_model, config.tgt_vocab_size)
    if config.tie_weights:
        head.weight = target.weight
    return kind(source, target, Stack(config.d_model, config.num_encoder_layers), head)
