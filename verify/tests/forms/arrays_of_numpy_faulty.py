"""Functions over NumPy arrays, each with one fault."""

import numpy as np


def softmax(x):
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=0, keepdims=True)


def layer_norm(x, g, b, eps=1e-5):
    mean, variance = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * g + b


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.44715 * x**3)))
