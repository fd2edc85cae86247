"""Byte-pair encoding: training and encoding (document 003, section 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from operator import itemgetter

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import BYTE_PAIRS
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds, rounds_to

Pair = tuple[bytes, bytes]


def bpe_train(texts: Sequence[str], num_merges: int) -> list[Pair]:
    """The merges, in the order in which they are learned: each joins a most frequent pair of neighbours.

    Texts are sequences of UTF-8 bytes, not split any further; overlapping pairs all count; of equally frequent pairs
    the one that comes first is taken. Fewer than num_merges are learned when no pair is left.
    """
    words = [_bytes(text) for text in texts]
    merges: list[Pair] = []
    while len(merges) < num_merges and (counts := pair_counts(words)):
        merges.append(max(counts, key=lambda pair: counts[pair]))
        words = [merged(word, merges[-1]) for word in words]
    return merges


def bpe_encode(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """The pieces of a text: while any merge applies, the earliest learned is done everywhere, left to right."""
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    pieces = _bytes(text)
    while known := [pair for pair in pairwise(pieces) if pair in ranks]:
        pieces = merged(pieces, min(known, key=lambda pair: ranks[pair]))
    return pieces


def pair_counts(words: Sequence[Sequence[bytes]]) -> Counter[Pair]:
    """Return the number of occurrences of each pair of neighbours in the words, in the order of their first places."""
    return Counter(pair for word in words for pair in pairwise(word))


def merged(pieces: Sequence[bytes], pair: Pair) -> list[bytes]:
    """The pieces with every occurrence of the pair joined, found from left to right without overlap."""
    out: list[bytes] = []
    rest = list(reversed(pieces))
    while rest:
        first = rest.pop()
        out.append(first + rest.pop() if rest and (first, rest[-1]) == pair else first)
    return out


def _bytes(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


def _texts(longest: int) -> list[str]:
    return ["".join(letters) for n in range(1, longest + 1) for letters in product("ab", repeat=n)]


_MERGES = ((), ((b"a", b"b"),), ((b"a", b"a"), (b"aa", b"b")), ((b"b", b"a"), (b"a", b"ba"), (b"aba", b"b")))


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 5, four lists of merges; three texts beyond ASCII")
def _lossless() -> Identities:
    """The pieces join to the text, whatever the merges: joining neighbours keeps the bytes, and every byte is a piece
    of its own, so nothing is unknown.
    """
    for text, merges in product(_texts(5), _MERGES):
        joined = computed(bpe_encode, text, merges).then(lambda pieces: int.from_bytes(b"".join(pieces)))
        yield joined, sp.Integer(int.from_bytes(text.encode()))
    for text in ("naïve", "中文", "🙂é"):
        yield holds(b"".join(bpe_encode(text, bpe_train([text], 2))).decode() == text)


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 5, every pair in them")
def _shorter() -> Identities:
    """A merge takes away one token for every pair it joins, and leaves none of that pair: in a run of equal letters
    half of the overlapping pairs vanish unjoined.
    """
    for text in _texts(5):
        pieces = _bytes(text)
        for pair in pair_counts([pieces]):
            after = merged(pieces, pair)
            yield computed(len, pieces), sp.Integer(len(after) + after.count(b"".join(pair)))
            yield computed(pair_counts, [after]).then(itemgetter(pair)), sp.S.Zero


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 5, two merges")
def _most_frequent() -> Identities:
    """Each merge that is learned is a most frequent pair of the text as merged so far."""
    for text in _texts(5):
        merges = bpe_train([text], 2)
        for k, pair in enumerate(merges):
            counts = pair_counts([bpe_encode(text, merges[:k])])
            yield sp.Integer(counts[pair]), sp.Max(0, *counts.values(), evaluate=False)


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 6, three merges")
def _training_is_encoding() -> Identities:
    """Encoding the text that was trained on gives the pieces that training ended with."""
    for text in _texts(6):
        merges, pieces = bpe_train([text], 3), _bytes(text)
        for pair in merges:
            pieces = merged(pieces, pair)
        yield holds(bpe_encode(text, merges) == pieces)


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 5, four lists of merges")
def _fully_encoded() -> Identities:
    """No learned pair stands next to each other in the result."""
    for text, merges in product(_texts(5), _MERGES):
        yield computed(_unjoined, text, merges), sp.S.Zero


def _unjoined(text: str, merges: Sequence[Pair]) -> int:
    """Return the number of learned pairs that are left side by side."""
    left = pair_counts([bpe_encode(text, merges)])
    return sum(left[pair] for pair in set(merges))


@step(scope=Scope.ENUMERATED, detail="one example")
def _not_shortest() -> Identities:
    """Merging is greedy: with merges bc, ab, cd the text "abcd" becomes a, bc, d, though ab, cd is shorter and in the
    vocabulary.
    """
    merges = [(b"b", b"c"), (b"a", b"b"), (b"c", b"d")]
    shortest = [b"ab", b"cd"]
    yield holds({b"".join(pair) for pair in merges} >= set(shortest) and b"".join(shortest) == b"abcd")
    yield computed(bpe_encode, "abcd", merges).then(len), sp.Integer(len(shortest) + 1)


@step(
    scope=Scope.ENUMERATED,
    detail="one number; that there are 50,000 merges is known of the model, not of the documents",
)
def _vocabulary() -> Identities:
    """256 bytes, 50,000 merges and one special token make the 50,257 tokens that are printed."""
    yield sp.Add(256, 50000, 1, evaluate=False), sp.Integer(50257)


@step(scope=Scope.NUMERIC, detail="one number")
def _rounded() -> Identities:
    """50,257 tokens are 50,000 to the nearest thousand."""
    yield rounds_to(sp.Rational(50257, 1000), "50")


@step(scope=Scope.NUMERIC, detail="the printed pieces")
def _four_tokens() -> Identities:
    """The four printed pieces join to "The cat sat on"; each but the first begins with its space, and has no other."""
    pieces = ("The", " cat", " sat", " on")
    yield computed(len, pieces), sp.Integer(4)
    yield holds("".join(pieces) == "The cat sat on")
    yield holds([piece.rfind(" ") for piece in pieces] == [-1, 0, 0, 0])


@erratum(
    kind="wrong",
    source=Source("003", "5, Simple Example", 292),
    printed=r"\text{Input: The cat sat on (18 characters)}",
    corrected=r"\text{14 characters}",
)
def _length_of_the_example() -> Evidence:
    return Evidence('the characters of "The cat sat on"', 18, len("The cat sat on"))


@erratum(
    kind="imprecise",
    source=Source("000", "11.3", 414),
    printed=r"\text{greedily merges frequent character pairs, handles any Unicode}",
    corrected=r"\text{byte-level merges join pairs of byte strings, also within a character; that is why "
    r"they handle any Unicode}",
)
def _bytes_not_characters() -> Evidence:
    text = "é"
    return Evidence('pairs that can be merged within "é", one character', len(text) - 1, len(bpe_train([text], 5)))


EQUATIONS = (
    Equation(
        slug="byte-pair-encoding",
        number=None,
        title="Byte-pair encoding",
        statement=r"\text{tokenize}(s) = [\text{vocab}[\tau_i] \mid \tau_i \in \mathrm{BPE\_segment}(s, M)]",
        sources=(Source("003", "5, Mathematical Formulation", 324), Source("000", "11.3", 414)),
        symbols=(
            Symbol("s", r"\Sigma^*", "a text, as its UTF-8 bytes"),
            Symbol(
                "M",
                r"(\Sigma^* \times \Sigma^*)^*",
                "the learned merges, pairs of byte strings, in the order of learning",
            ),
            Symbol(r"\tau_i", r"\Sigma^*", "the pieces"),
        ),
        assumptions=(
            Assumption("there is a text", lambda a: len(a["texts"]) > 0),
            Assumption("the number of merges is not negative", lambda a: a["num_merges"] >= 0),
        ),
        sample=lambda rng: {"texts": ["".join(rng.choice(list("abc"), size=int(rng.integers(1, 9))))], "num_merges": 3},
        steps=(
            _lossless,
            _shorter,
            _most_frequent,
            _training_is_encoding,
            _fully_encoded,
            _not_shortest,
            _vocabulary,
            _rounded,
            _four_tokens,
        ),
        costs=BYTE_PAIRS,
        errata=(_length_of_the_example, _bytes_not_characters),
    ),
)
