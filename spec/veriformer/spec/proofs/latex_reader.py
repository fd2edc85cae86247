"""Formulas in LaTeX, read and evaluated: what is printed is compared with what was computed, at values of its letters.

A letter is named as it is read aloud (`sigma`, `d_model`, `x_hat`, `W^(1)`): a number, an array, whose indices count
from 1, or a function, of its indices or its arguments. Products of arrays are matrix products.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp

Letters = Mapping[str, Any]
Read = Callable[[Letters], Any]
"""What a part of a formula says, given its letters."""

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[a-zA-Z]|\d+(?:\.\d+)?|\S")
_TYPESETTING = re.compile(r"\\(?:left|right|big|Big|quad)(?![a-zA-Z])|(?<!\\)\\[,;! ]")
_FACES = ("\\mathbf", "\\mathcal", "\\mathrm", "\\text", "\\mathbb", "\\operatorname", "\\tilde")
_ACCENTS = {"\\hat": "_hat", "\\bar": "_bar"}
_RELATIONS = {"=", "<", ">", "\\le", "\\leq", "\\ge", "\\geq", "\\approx", "\\in", "\\to", "\\neq", "\\ll"}
_BRACKETS = {"(": ")", "[": "]", "\\{": "\\}", "\\|": "\\|"}
_ENDS = {"|", ")", "]", "}", "\\}", ",", ";", ":", "&", "\\\\", "\\end", "+", "-", *_RELATIONS}


def _entrywise(function: str) -> Callable[[Any], Any]:
    return lambda x: np.frompyfunc(getattr(sp, function), 1, 1)(x)


_FUNCTIONS: dict[str, Any] = {
    **{name: _entrywise(name) for name in ("log", "exp", "sin", "cos", "tanh")},
    "max": lambda *x: sp.Max(*np.ravel(x)),
    "min": lambda *x: sp.Min(*np.ravel(x)),
    "diag": np.diag,
    "Concat": lambda *parts: np.concatenate(parts, -1),
}


class UnreadableError(ValueError):
    """A formula that the reader does not understand, or a letter that has no value."""


def stated(line: str, letters: Letters, values: Sequence[Any] = ()) -> bool:
    """Whether every formula of a line of words and formulas holds: relations are true, others give the values, in turn.

    A relation after the word "if" must be true exactly where the one before it is. A letter that is a range stands for
    each of its numbers. A single letter only needs to be known.
    """
    ranges = {name: x for name, x in letters.items() if isinstance(x, range)}
    cases = (dict(zip(ranges, numbers, strict=True)) for numbers in product(*ranges.values()))
    return all(_stated(line, {**letters, **case}, list(values)) for case in cases)


def _stated(line: str, letters: Letters, values: list[Any]) -> bool:
    verdicts: list[bool] = []
    for word, formula in formulas(line):
        found = [(relation, read(letters)) for relation, read in _Parser(formula).relations()]
        if len(found) > 1:
            verdict = all(_related(relation, left, right) for (_, left), (relation, right) in pairwise(found))
            if values and (callable(values[0]) or isinstance(values[0], bool)):
                expected = values.pop(0)
                verdict = verdict is bool(expected(letters) if callable(expected) else expected)
        elif _SINGLE.fullmatch(_NOT_COMPUTING.sub("", formula)):
            verdict = True
        elif values:
            expected = values.pop(0)
            verdict = same(found[0][1], expected(letters) if callable(expected) else expected)
        else:
            raise UnreadableError(f"{formula}: nothing to compare it with")
        verdicts[-1:] = [verdicts[-1] == verdict] if word == "if" else [*verdicts[-1:], verdict]
    if values:
        raise UnreadableError(f"{line}: {len(values)} values too many")
    return all(verdicts)


_NOT_COMPUTING = re.compile(
    r"[_^]\{\\text\{[^{}]*\}\}|[_^]\{\([^)]*\)\}|\^[OQKV]\b|_\{[^{}]*\}|_\\?\w+|"
    r"\\(?:text|math[a-z]+|hat|bar|nabla)(?![a-zA-Z])|[{}]"
)
_SINGLE = re.compile(r" *\\?[A-Za-z]+'? *")


def formulas(line: str) -> Iterator[tuple[str, str]]:
    """The formulas between the words of a line, with the word before each, without what only punctuates."""
    for word, part in _between_words(_TYPESETTING.sub(" ", line)):
        for piece in _at_top(part):
            if formula := piece.strip(" .,;:").lstrip("= "):
                yield word, formula


def _between_words(line: str) -> Iterator[tuple[str, str]]:
    r"""What stands between the \text{…} that are in no brackets and name no function, after the last of them."""
    word, part, depth, i = "", "", 0, 0
    while i < len(line):
        text = _WORDS.match(line, i) if depth == 0 else None
        if text and not (text[2] and text[1].isalpha()):
            yield word, part
            word, part, i = text[1].strip(" ,;"), "", text.end()
            continue
        depth += (line[i] in "{([") - (line[i] in "})]")
        part, i = part + line[i], i + 1
    yield word, part


_WORDS = re.compile(r"\\(?:text|mathrm)\{([^{}]*)\}(?=( *[(_=])?)")


def _at_top(text: str) -> list[str]:
    """The text, cut at commas, semicolons and colons that stand in no brackets."""
    depth, parts = 0, [""]
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", text):
        depth += (token in ("(", "[", "{", "\\{", "\\begin")) - (token in (")", "]", "}", "\\}", "\\end"))
        if depth == 0 and token in (",", ";", ":"):
            parts.append("")
        else:
            parts[-1] += token
    return parts


def spoken(letter: str) -> str:
    """The name of a letter in LaTeX, as it is read aloud."""
    try:
        return _Parser(letter).bare()[0]
    except UnreadableError:
        return letter


def _related(relation: str, left: Any, right: Any) -> bool:
    if relation in ("=", "\\to"):
        return same(left, right)
    if relation == "\\approx":
        digits = next(k for k in range(20) if (right * 10**k).is_integer)
        return bool(abs(left - right) <= sp.Rational(1, 2 * 10**digits))
    if relation == "\\in":
        return any(same(left, x) for x in np.ravel(np.array(right, dtype=object)))
    order = {"<": left < right, ">": left > right, "\\le": left <= right, "\\ge": left >= right}
    order |= {"\\leq": order["\\le"], "\\geq": order["\\ge"]}
    return bool(order[relation])


def same(left: Any, right: Any) -> bool:
    """Whether two numbers or arrays are equal: exactly, or to 12 digits where they were computed in floats."""
    x, y = (np.array(v, dtype=object) for v in (left, right))
    if x.size == y.size == 1:
        x, y = x.ravel(), y.ravel()
    return x.shape == y.shape and all(_equal(a, b) for a, b in zip(x.ravel(), y.ravel(), strict=True))


def _equal(a: Any, b: Any) -> bool:
    difference = sp.sympify(a) - sp.sympify(b) if a != b else sp.S.Zero
    if difference.has(sp.Float):
        return bool(abs(sp.N(difference)) <= 1e-12 * max(1, abs(sp.N(a))))
    return bool(difference == 0 or sp.simplify(difference) == 0)


class _Parser:
    """A descent through the tokens of one formula; what it returns are functions of the letters."""

    def __init__(self, formula: str) -> None:
        self.tokens = [t for t in _TOKEN.findall(_TYPESETTING.sub(" ", formula)) if t != "~"]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise UnreadableError(f"expected {expected or 'more'}, got {token or 'the end'} in {' '.join(self.tokens)}")
        self.at += 1
        return token

    def relations(self) -> Iterator[tuple[str, Read]]:
        yield "", self.sum()
        while self.peek():
            if self.peek() not in _RELATIONS:
                raise UnreadableError(f"{self.peek()} in {' '.join(self.tokens)}")
            yield self.take(), self.sum()

    def sum(self) -> Read:
        found = self.product()
        while self.peek() in ("+", "-"):
            found = _both(self.take(), found, self.product())
        return found

    def product(self) -> Read:
        if self.peek() in ("-", "+"):
            sign, rest = self.take(), self.product()
            return (lambda letters: -rest(letters)) if sign == "-" else rest
        found = self.power()
        while self.peek() and self.peek() not in _ENDS and self.peek() != self.closing:
            operator = self.take() if self.peek() in ("\\cdot", "\\times", "\\odot", "\\oplus", "/") else "juxtaposed"
            found = _both(operator, found, self.power())
        return found

    closing = ""

    def power(self) -> Read:
        found = self.atom()
        while self.peek() in ("^", "_"):
            if self.take() == "_":
                found = _both("index", found, self.group())
                continue
            if self.peek() in ("T", "\\top"):
                self.take()
                found = _then(found, lambda x: np.array([x] if isinstance(x, tuple) else x, dtype=object).T)
            else:
                found = _both("^", found, self.group())
        return found

    def group(self) -> Read:
        """What stands in braces, or the next token alone."""
        if self.peek() != "{":
            return self.atom(alone=True)
        return self.enclosed("{", "}")

    def enclosed(self, opening: str, closing: str) -> Read:
        self.take(opening)
        outer, self.closing = self.closing, closing
        found = [self.sum()]
        below = self.peek() == ";"
        while self.peek() in (",", "|", ";"):
            self.take()
            found.append(self.sum())
        self.closing = outer
        self.take(closing)
        if below:  # [a; b], one under the other
            return lambda letters: np.concatenate([f(letters) for f in found])
        return found[0] if len(found) == 1 else lambda letters: tuple(f(letters) for f in found)

    def atom(self, alone: bool = False) -> Read:
        token = self.peek()
        if token[:1].isdigit():
            number = sp.Rational(self.take())
            return lambda letters: number
        if token == "\\frac":
            return self.fraction()
        if token == "\\sqrt":
            self.take()
            return _then(self.group(), sp.sqrt)
        if token == "\\nabla":
            return self.gradient()
        if token == "\\sum":
            return self.series()
        if token == "\\begin":
            return self.matrix()
        if token == "\\|":
            return self.norm()
        if token in _BRACKETS:
            return self.enclosed(token, _BRACKETS[token])
        return self.name(alone)

    def norm(self) -> Read:
        inside = self.enclosed("\\|", "\\|")
        if self.peek() == "_":
            self.take()
            self.take("2")
        return _then(inside, lambda x: sp.sqrt(sum(e**2 for e in np.ravel(x))))

    def fraction(self) -> Read:
        self.take()
        start = self.at
        if self.tokens[self.at + 1] == "\\partial":
            return self.derivative()
        self.at = start
        above, below = self.group(), self.group()
        return _both("/", above, below)

    def derivative(self) -> Read:
        r"""\frac{\partial L}{\partial x_i} is the letter dL/dx, which may be taken at i."""
        words, indices = [], []
        for _ in range(2):
            self.take("{")
            self.take("\\partial")
            name, index = self.bare()
            words.append("d" + name)
            indices += index
            self.take("}")
        return _letter("/".join(words), indices)

    def gradient(self) -> Read:
        r"""\nabla_x L is the letter dL/dx, \nabla S the letter dS, and \nabla (…) what the letter nabla makes of it."""
        self.take()
        if self.peek() == "(":
            return _both("call", _letter("nabla", []), self.power())
        if self.peek() != "_":
            name, index = self.bare()
            return _letter("d" + name, index)
        self.take("_")
        below = self.below()[0] if self.peek() != "{" else "_" + self.braced()
        name, _ = self.bare()
        return _letter(f"d{name}/d{below[1:]}", [])

    def braced(self) -> str:
        self.take("{")
        word, _ = self.bare()
        self.take("}")
        return word

    def series(self) -> Read:
        self.take()
        self.take("_")
        limits: Read | None = None
        chosen: Read | None = None
        if self.peek() == "{":
            self.take()
            bound = self.take()
            if self.peek() == "\\in":
                self.take()
                chosen = self.sum()
            if self.peek() == "=":
                self.take()
                first = self.sum()
                limits = lambda letters: first(letters)  # noqa: E731
            condition = self.condition(bound)
            self.take("}")
        else:
            bound, condition = self.take(), lambda letters: True
        last: Read = lambda letters: letters["n"]  # noqa: E731
        if self.peek() == "^":
            self.take()
            last = self.group()
        term = self.product()
        start: Read = limits or (lambda letters: 1)

        def total(letters: Letters) -> Any:
            numbers = chosen(letters) if chosen else range(int(start(letters)), int(last(letters)) + 1)
            values = [{**letters, bound: i} for i in numbers]
            return sum((term(v) for v in values if condition(v)), sp.S.Zero)

        return total

    def condition(self, bound: str) -> Read:
        if self.peek() != ":":
            return lambda letters: True
        self.take()
        left, relation, right = self.sum(), self.take(), self.sum()
        return lambda letters: _related(relation, left(letters), right(letters))

    def matrix(self) -> Read:
        for token in ("\\begin", "{"):
            self.take(token)
        while self.take() != "}":
            pass
        rows: list[list[Read]] = [[]]
        while self.peek() != "\\end":
            rows[-1].append(self.sum())
            if self.peek() == "&":
                self.take()
            elif self.peek() == "\\\\":
                self.take()
                rows.append([])
        while self.take() != "}":
            pass
        return lambda letters: np.array([[entry(letters) for entry in row] for row in rows], dtype=object)

    def word(self) -> str:
        """A letter with its face or accent."""
        token = self.take()
        if token in _FACES or token in _ACCENTS:
            if self.peek() != "{":
                return self.word() + _ACCENTS.get(token, "")
            self.take("{")
            word = ""
            while self.peek() != "}":
                word += self.word()
            self.take("}")
            return word + _ACCENTS.get(token, "")
        if not re.fullmatch(r"\\?[a-zA-Z]+|[-'*]", token):
            raise UnreadableError(f"{token} in {' '.join(self.tokens)}")
        return token.removeprefix("\\")

    def bare(self, alone: bool = False) -> tuple[str, list[Read]]:
        """A letter's name, with primes, a layer in parentheses and words below, and its indices."""
        word, indices = self.word(), []
        while not alone:
            rest = self.tokens[self.at : self.at + 3]
            if rest[:1] == ["'"]:
                word += self.take()
            elif rest == ["^", "{", "("]:
                self.at += 3
                word += f"^({self.take()})"
                self.take(")")
                self.take("}")
            elif rest == ["^", "{", "\\text"]:
                self.at += 2
                word += f"^{self.word()}"
                self.take("}")
            elif rest[:1] == ["^"] and word[0].isupper() and rest[1:2] and rest[1] in "OQKV":
                self.at += 2
                word += f"^{rest[1]}"
            elif rest[:1] == ["_"]:
                self.take()
                below, found = self.below()
                word += below
                indices += found
            else:
                break
        return word, indices

    def below(self) -> tuple[str, list[Read]]:
        """A subscript: words and numbers belong to the name, letters are indices, `ij` two of them."""
        if self.peek() != "{":
            token = self.take()
            return (f"_{token}", []) if token.isdigit() else (f"_{token.removeprefix(chr(92))}", [])
        self.take("{")
        start = self.at
        if self.peek() in ("\\text", "\\max"):
            word = self.word()
            if self.peek() == "}":
                self.take()
                return f"_{word}", []
            self.at = start
        found = []
        while self.peek() != "}":
            found.append(self.index())
            if self.peek() == ",":
                self.take()
        self.take("}")
        return "", found

    def index(self) -> Read:
        start = self.at
        found = self.atom(alone=True)
        if self.peek() in ("_", "("):  # an index of an index, or a function: y_t, rel(i, j)
            self.at = start
            found = self.atom()
        while self.peek() in ("+", "-", "/"):
            found = _both(self.take(), found, self.atom(alone=True))
        return found

    def name(self, alone: bool) -> Read:
        word, indices = self.bare(alone)
        if word in ("log", "exp", "sin", "cos", "tanh", "min", "max") and self.peek() not in ("(", "["):
            exponent = None
            if self.peek() == "^":
                self.take()
                exponent = self.group()
            applied = _both("call", _letter(word, []), self.power())
            return _both("^", applied, exponent) if exponent else applied
        found = _letter(word, indices)
        if self.peek() in ("(", "[") and not alone:
            return _both("applied", found, self.enclosed(self.peek(), _BRACKETS[self.peek()]))
        return found


def _letter(name: str, indices: list[Read]) -> Read:
    def value(letters: Letters) -> Any:
        known = {**_FUNCTIONS, "infty": sp.oo, "pi": sp.pi, "e": sp.E, **letters}
        if name in known:
            return _at(known[name], [index(letters) for index in indices])
        stem, _, below = name.rpartition("_")
        family = f"{stem}_" if f"{stem}_" in known else stem
        if family in known and (below in letters or below.isdigit()):
            place = int(below) if below.isdigit() else letters[below]
            return _at(known[family], [place, *(index(letters) for index in indices)])
        raise UnreadableError(f"{name}: expected one of {', '.join(letters)}")

    return value


def _at(value: Any, indices: list[Any]) -> Any:
    if not indices:
        return value
    if callable(value):
        return value(*indices)
    array = np.array(value, dtype=object)
    if any(not 1 <= i <= size for i, size in zip(indices, array.shape, strict=False)):
        raise UnreadableError(f"index {indices} of shape {array.shape}")
    return array[tuple(int(i) - 1 for i in indices)]


def _then(read: Read, function: Callable[[Any], Any]) -> Read:
    return lambda letters: function(read(letters))


def _both(operator: str, left: Read, right: Read) -> Read:
    if operator == "\\oplus":
        return lambda letters: letters["oplus"](left(letters), right(letters))
    return lambda letters: _OPERATORS[operator](left(letters), right(letters))


def _multiplied(left: Any, right: Any) -> Any:
    return left @ right if np.ndim(left) and np.ndim(right) else left * right


def _power(base: Any, exponent: Any) -> Any:
    return np.frompyfunc(sp.Pow, 2, 1)(base, exponent)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "/": lambda x, y: x * (1 / sp.sympify(y)) if not np.ndim(y) else x / y,
    "\\odot": lambda x, y: np.asarray(x, dtype=object) * np.asarray(y, dtype=object),
    "\\cdot": _multiplied,
    "\\times": _multiplied,
    "juxtaposed": _multiplied,
    "^": _power,
    "call": lambda f, x: f(x),
    "applied": lambda f, x: f(*(x if isinstance(x, tuple) else (x,))) if callable(f) else _multiplied(f, x),
    "index": lambda x, i: _at(x, [i]),
}
