"""Whole models over the operations: an encoder, a decoder, and the two together."""

from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.decoder import Decoder, causal_lm
from veriformer.impl.models.encoder import Encoder, masked_lm
from veriformer.impl.models.encoder_decoder import EncoderDecoder, seq2seq_lm
from veriformer.impl.models.families import bert, gpt, llama, t5

__all__ = [
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "ModelConfig",
    "bert",
    "causal_lm",
    "gpt",
    "llama",
    "masked_lm",
    "seq2seq_lm",
    "t5",
]
