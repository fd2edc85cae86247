"""What the documents say of tokens, embeddings and their losses, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models: it depends on data, training and measure, none of which is given"
_TOKENIZER = "it depends on the merges or the vocabulary of a tokenizer, which are not given"
_PRACTICE = "a description of practice, which nothing derived could contradict"

_DECIDED = (
    (
        "000",
        "11.2",
        403,
        "perplexities compare only with the same tokenizer",
        "tokenizer-perplexity:comparable-per-character",
    ),
    ("000", "11.2", 403, "tokenizers create different sequence lengths", "tokenizer-perplexity:power"),
    ("000", "11.2", 407, '"hello world" in 4 pieces', "tokenizer-perplexity:worked"),
    ("000", "11.2", 408, '"hello world" in 11 characters', "tokenizer-perplexity:worked"),
    ("000", "11.3", 414, "BPE greedily merges frequent character pairs", "byte-pair-encoding:bytes-not-characters"),
    ("000", "11.3", 414, "BPE handles any Unicode", "byte-pair-encoding:lossless"),
    ("000", "11.3", 415, "unigram is a probabilistic model", "unigram-segmentation:optimal"),
    ("000", "11.3", 431, "the head uses Eᵀ, of shape d × V", "weight-tying:ratio"),
    (
        "001",
        "11.2",
        542,
        "perplexities compare only with the same tokenizer",
        "tokenizer-perplexity:comparable-per-character",
    ),
    ("001", "11.2", 546, '"hello world" in 4 pieces', "tokenizer-perplexity:worked"),
    ("001", "11.2", 547, '"hello world" in 11 characters', "tokenizer-perplexity:worked"),
    ("001", "11.3", 553, "BPE greedily merges frequent character pairs", "byte-pair-encoding:bytes-not-characters"),
    ("001", "11.3", 554, "unigram is a probabilistic model", "unigram-segmentation:optimal"),
    ("001", "11.3", 570, "the head uses Eᵀ, of shape d × V", "weight-tying:ratio"),
    ("002", "2.2.4", 398, "softmax gives probabilities that sum to 1", "softmax:sums-to-one"),
    ("002", "2.2.4", 403, "L = −Σ y_i log p_i", "cross-entropy:zero-times-log-zero"),
    ("002", "2.2.4", 408, "the loss is low where p is near 1", "next-token-loss:surprise"),
    ("002", "2.2.4", 409, "the loss is high where p is near 0", "next-token-loss:surprise"),
    ("002", "2.2.4", 416, "∇L = p − y", "cross-entropy:clean-gradient-needs-a-distribution"),
    ("002", "2.2.4", 420, "90% is a low loss, 1% a very high one", "next-token-loss:surprise"),
    ("002", "8.1", 954, "L = −Σ log P(x_t | x_1, …, x_{t−1})", "next-token-loss:factorisation"),
    ("002", "8.1", 957, "the loss is per sequence, averaged over the batch", "next-token-loss:formula"),
    ("002", "8.1", 959, "a causal mask prevents leakage from the future", "masked-attention:causality"),
    ("002", "8.2", 965, "e_i = E[i]", "token-embedding:one-hot"),
    ("002", "8.2", 970, "sharing E reduces parameters", "weight-tying:saved"),
    ("002", "8.2", 972, "P(w_t | context) = softmax(h_t Eᵀ)", "weight-tying:ratio"),
    ("002", "8.2", 980, "h Eᵀ has V columns", "weight-tying:vjp"),
    ("002", "8.2", 986, "perplexity measures uncertainty", "perplexity:uniform"),
    ("003", "5, Simple Example", 292, '"The cat sat on" has 18 characters', "byte-pair-encoding:length-of-the-example"),
    ("003", "5, Mathematical Formulation", 324, "tokens are the pieces' numbers", "byte-pair-encoding:lossless"),
    ("003", "5, Challenges", 338, "unknown words decompose into smaller tokens", "byte-pair-encoding:lossless"),
    ("003", "4, Model Hyperparameters", 239, "50,257 BPE tokens", "byte-pair-encoding:vocabulary"),
    ("003", "6", 381, "X_tok = E[T]", "token-embedding:one-hot"),
    ("003", "6", 364, "dense vectors make gradients possible over discrete tokens", "token-embedding:scatter-add"),
    ("003", "6, Mathematical Formulation", 415, "X_tok[i] = E[t_i]", "token-embedding:one-hot"),
    (
        "003",
        "8, Encoder-Only",
        605,
        "negative log-likelihood over masked positions",
        "masked-lm-loss:visible-gets-nothing",
    ),
    ("003", "8, Encoder-Only", 611, "L = −Σ log P(x_i | all but x_i)", "masked-lm-loss:all-but-itself"),
    ("003", "12", 1362, "a position's state depends on all before it", "masked-attention:causality"),
    ("003", "12", 1381, "W_lm = Eᵀ", "weight-tying:ratio"),
    ("003", "12, Mathematical Formulation", 1440, "tying reduces parameters", "weight-tying:saved"),
    ("004", "2.1", 109, "p_ti is the softmax of the logits", "softmax:sums-to-one"),
    ("004", "2.1", 123, "the loss of a position is −log p of its token", "next-token-loss:own-position-only"),
    ("004", "2.2", 131, "an average over all vocabulary entries", "cross-entropy:sum-not-average"),
    ("004", "2.2", 142, "the total loss is a mean over tokens", "next-token-loss:sum-or-mean"),
    ("004", "2.2", 152, "minimal cross entropy is maximal likelihood", "cross-entropy:one-hot"),
    ("004", "2.3", 171, "∂L/∂z = p − y", "cross-entropy:clean-gradient"),
    ("004", "2.4", 200, "loss 0.6063537001609802", "next-token-loss:worked"),
    ("004", "2.5", 212, "PPL = e^L", "perplexity:formula"),
    ("004", "2.5", 229, "perplexity 1.8337328433990479", "next-token-loss:worked"),
    ("004", "2.5", 219, "perplexity measures surprise", "perplexity:formula"),
    ("004", "3.1", 281, "∂L/∂z = p − y", "cross-entropy:clean-gradient"),
    ("004", "4.5", 603, "loss 3.2068, perplexity 24.70", "next-token-loss:worked"),
)

_UNDECIDED = (
    ("000", "11.3", 415, "unigram is often better for morphologically rich languages", _MODELS),
    ("000", "11.3", 419, "BOS is often used for unconditional generation", _PRACTICE),
    ("000", "11.3", 420, "EOS is crucial for proper training", _MODELS),
    ("001", "11.3", 554, "unigram is often better for morphologically rich languages", _MODELS),
    ("002", "2.2.1", 349, "similar words cluster together", _MODELS),
    ("002", "2.2.1", 350, "king − man + woman ≈ queen", _MODELS),
    ("002", "2.2.1", 351, '"cat" is nearer to "dog" than to "airplane"', _MODELS),
    ("003", "5", 255, "letters have too many combinations", _MODELS),
    ("003", "5", 257, "subwords are a perfect balance", _MODELS),
    ("003", "5, Simple Example", 284, 'the numbers of "The", " cat", " sat", " on"', _TOKENIZER),
    ("003", "5, Challenges", 339, "models tokenize other domains poorly", _MODELS),
    ("003", "5, Challenges", 344, "larger vocabularies shorten sequences", _TOKENIZER),
    ("003", "6", 365, "near vectors capture semantic relationships", _MODELS),
    ("003", "8, Encoder-Only", 615, "bidirectional context enables deep understanding", _MODELS),
    ("003", "12, Mathematical Formulation", 1440, "tying improves performance", _MODELS),
    ("003", "12, Mathematical Formulation", 1435, "the head's bias is often omitted", _PRACTICE),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
