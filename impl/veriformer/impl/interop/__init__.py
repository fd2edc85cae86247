"""Weights of other libraries, in both directions."""

from veriformer.impl.interop.transformers_models import from_transformers, to_transformers, transformers_state

__all__ = ["from_transformers", "to_transformers", "transformers_state"]
