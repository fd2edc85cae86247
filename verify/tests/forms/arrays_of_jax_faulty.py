"""Functions over JAX arrays, each with one fault."""

import jax
import jax.numpy as jnp


def rms_norm(x, weight, eps=1e-6):
    return x * jax.lax.rsqrt(jnp.sum(x * x, -1, keepdims=True) + eps) * weight


@jax.jit
def swish(x):
    return x * jax.nn.sigmoid(2 * x)


def dot_product_attention(query, key, value):
    """[batch, length, heads, width], as JAX has it."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * key.shape[1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), value)
