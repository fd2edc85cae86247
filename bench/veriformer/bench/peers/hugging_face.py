"""GPT-2 of Hugging Face's transformers, built from its configuration; the library belongs to the extra ``peers``."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from veriformer.bench.peers.sizes import Sizes

NAME = "GPT2LMHeadModel"


class MissingError(ImportError):
    """The library is not there; the message says how to get it."""


def gpt2(sizes: Sizes) -> Any:
    """Their model of these sizes, with random weights and without dropout. Raises MissingError."""
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
