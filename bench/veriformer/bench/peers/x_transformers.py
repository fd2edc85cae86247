"""A decoder of x-transformers of the same sizes; the library belongs to the extra ``peers``."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from veriformer.bench.peers.hugging_face import MissingError
from veriformer.bench.peers.sizes import Sizes

NAME = "x-transformers"


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
