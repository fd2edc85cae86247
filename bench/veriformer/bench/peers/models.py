"""Models to compare with: GPT-2 as one writes it with ``torch.nn``, and those of other libraries, of the same sizes.

The plain one is after Karpathy's nanoGPT. The libraries belong to the extra ``peers``."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from veriformer.bench.peers.catalogue import Sizes

GPT2 = "GPT2LMHeadModel"

X_TRANSFORMERS = "x-transformers"


class MissingError(ImportError):
    """The library is not there; the message says how to get it."""


def gpt2(sizes: Sizes) -> Any:
    """Return their model of these sizes, with random weights and without dropout. Raises MissingError."""
    try:
        library: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingError("transformers is not installed: pip install 'veriformer[peers]'") from error
    logging.getLogger("transformers").setLevel(logging.ERROR)
    config = library.GPT2Config(
        vocab_size=sizes.vocabulary,
        n_positions=sizes.length,
        n_embd=sizes.width,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
        loss_type="ForCausalLMLoss",
    )
    return library.GPT2LMHeadModel(config)


def decoder(sizes: Sizes) -> Any:
    """Pre-norm, GELU, learned positions, a tied head and PyTorch's attention, as ours has. Raises MissingError."""
    try:
        with warnings.catch_warnings():  # of what it imports
            warnings.simplefilter("ignore")
            library: Any = importlib.import_module("x_transformers")
    except ImportError as error:
        raise MissingError("x-transformers is not installed: pip install 'veriformer[peers]'") from error
    layers = library.Decoder(
        dim=sizes.width,
        depth=sizes.layers,
        heads=sizes.heads,
        attn_dim_head=sizes.width // sizes.heads,
        attn_flash=True,
    )
    return library.TransformerWrapper(
        num_tokens=sizes.vocabulary, max_seq_len=sizes.length, attn_layers=layers, tie_embedding=True
    )


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, n, d = x.shape
        q, k, v = (t.view(B, n, self.heads, d // self.heads).transpose(1, 2) for t in self.qkv(x).split(d, dim=2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B, H, n, d_k]
        return self.out(o.transpose(1, 2).contiguous().view(B, n, d))  # type: ignore[no-any-return]


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), _Attention(width, heads)
        self.network_norm = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.network(self.network_norm(x))  # type: ignore[no-any-return]


class PlainGPT(nn.Module):
    """Learned positions, pre-LayerNorm, a head tied to the table of tokens; PyTorch's modules and SDPA."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.token_table = nn.Embedding(sizes.vocabulary, sizes.width)
        self.position_table = nn.Embedding(sizes.length, sizes.width)
        self.blocks = nn.ModuleList(_Block(sizes.width, sizes.heads) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.head.weight = self.token_table.weight
        self.apply(_initialize)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of `ids [B, n]` against the tokens that follow, `labels [B, n]`."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.token_table(ids) + self.position_table(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1), ignore_index=-1)


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
