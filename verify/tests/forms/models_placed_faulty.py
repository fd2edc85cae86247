"""Models of models_placed.py, each wrong through its cache alone."""

from pathlib import Path

from veriformer.verify import module_of

theirs = module_of(Path(__file__).with_name("models_placed.py"))
ModelArgs = theirs.ModelArgs


class LateCache(theirs.Cache):
    """A token that comes by itself is written one place behind its own."""

    def update(self, places, k, v):
        return super().update(places + (len(places) == 1), k, v)


class Transformer(theirs.Transformer):
    def __init__(self, args: ModelArgs):
        super().__init__(args)

    def setup_caches(self, max_batch_size, max_seq_length):
        super().setup_caches(max_batch_size, max_seq_length)
        for layer in self.layers:
            layer.cache.__class__ = LateCache


class StartingTransformer(theirs.StartingTransformer):
    """Positions start anew with every call."""

    def __init__(self, args: ModelArgs):
        super().__init__(args)

    def at(self, start_pos, n):
        return super().at(0, n)
