"""A formula in LaTeX as a function of its letters: a descent through its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.latex_values import Letters, Read, UnreadableError, both, letter, related, then

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[a-zA-Z]|\d+(?:\.\d+)?|\S")
TYPESETTING = re.compile(r"\\(?:left|right|big|Big|quad)(?![a-zA-Z])|(?<!\\)\\[,;! ]")
_FACES = ("\\mathbf", "\\mathcal", "\\mathrm", "\\text", "\\mathbb", "\\operatorname", "\\tilde")
_ACCENTS = {"\\hat": "_hat", "\\bar": "_bar"}
_RELATIONS = {"=", "<", ">", "\\le", "\\leq", "\\ge", "\\geq", "\\approx", "\\in", "\\to", "\\neq", "\\ll"}
_BRACKETS = {"(": ")", "[": "]", "\\{": "\\}", "\\|": "\\|"}
_ENDS = {"|", ")", "]", "}", "\\}", ",", ";", ":", "&", "\\\\", "\\end", "+", "-", *_RELATIONS}


def relations(formula: str) -> list[tuple[str, Read]]:
    """Return the sides of a chain of relations, each with the relation before it; a single side with ""."""
    return list(_Parser(formula).relations())


def named(letter: str) -> str:
    """Return the name of a letter, as read aloud."""
    return _Parser(letter).bare()[0]


class _Parser:
    """A descent through the tokens of one formula; what it returns are functions of the letters."""

    def __init__(self, formula: str) -> None:
        self.tokens = [t for t in _TOKEN.findall(TYPESETTING.sub(" ", formula)) if t != "~"]
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
            found = both(self.take(), found, self.product())
        return found

    def product(self) -> Read:
        if self.peek() in ("-", "+"):
            sign, rest = self.take(), self.product()
            return (lambda letters: -rest(letters)) if sign == "-" else rest
        found = self.power()
        while self.peek() and self.peek() not in _ENDS and self.peek() != self.closing:
            operator = self.take() if self.peek() in ("\\cdot", "\\times", "\\odot", "\\oplus", "/") else "juxtaposed"
            found = both(operator, found, self.power())
        return found

    closing = ""

    def power(self) -> Read:
        found = self.atom()
        while self.peek() in ("^", "_"):
            if self.take() == "_":
                found = both("index", found, self.group())
                continue
            if self.peek() in ("T", "\\top"):
                self.take()
                found = then(found, lambda x: np.array([x] if isinstance(x, tuple) else x, dtype=object).T)
            else:
                found = both("^", found, self.group())
        return found

    def group(self) -> Read:
        """Parse the contents of braces, or the next token alone."""
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
        if token in ("\\frac", "\\tfrac"):
            return self.fraction()
        if token == "\\sqrt":
            self.take()
            return then(self.group(), sp.sqrt)
        if token == "\\nabla":
            return self.gradient()
        if token == "\\sum":
            return self.series()
        if token == "\\begin":
            return self.matrix()
        if self.tokens[self.at : self.at + 6] == [*["\\mathrm", "{", "a", "r", "g", "}"]]:
            return self.largest()
        if token == "\\|":
            return self.norm()
        if token == "\\{" and self.tokens[self.at + 2 : self.at + 3] == [":"]:
            return self.members()
        if token in _BRACKETS:
            return self.enclosed(token, _BRACKETS[token])
        return self.name(alone)

    def norm(self) -> Read:
        inside = self.enclosed("\\|", "\\|")
        if self.peek() == "_":
            self.take()
            self.take("2")
        return then(inside, lambda x: sp.sqrt(sum(e**2 for e in np.ravel(x))))

    def fraction(self) -> Read:
        self.take()
        start = self.at
        if self.tokens[self.at + 1] == "\\partial":
            return self.derivative()
        self.at = start
        above, below = self.group(), self.group()
        return both("/", above, below)

    def derivative(self) -> Read:
        r"""Read \frac{\partial L}{\partial x_i} as the letter dL/dx, which may be taken at i."""
        words, indices = [], []
        for _ in range(2):
            self.take("{")
            self.take("\\partial")
            name, index = self.bare()
            words.append("d" + name)
            indices += index
            self.take("}")
        return letter("/".join(words), indices)

    def gradient(self) -> Read:
        r"""Read \nabla_x L as the letter dL/dx, \nabla S as the letter dS, and \nabla (…) as a call of the letter
        nabla.
        """
        self.take()
        if self.peek() == "(":
            return both("call", letter("nabla", []), self.power())
        if self.peek() != "_":
            name, index = self.bare()
            return letter("d" + name, index)
        self.take("_")
        below = self.below()[0] if self.peek() != "{" else "_" + self.braced()
        name, _ = self.bare()
        return letter(f"d{name}/d{below[1:]}", [])

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

    def largest(self) -> Read:
        r"""Read \mathrm{arg}\max_{x \in S} f(x): the first of S at which f is largest.

        Without a set it is the letter that is all that stands below: a list of what the letters of f may be, each a
        mapping, of which the first is the result.
        """
        self.at += 6
        for token in ("\\max", "_", "{"):
            self.take(token)
        start, bound = self.at, self.word()
        if self.peek() == "\\in":
            self.take()
            among = then(self.sum(), lambda values: [{bound: x} for x in values])
        else:
            end = self.tokens.index("}", start)
            among, self.at = letter(" ".join(self.tokens[start:end]), []), end
        self.take("}")
        term = self.product()
        return lambda letters: next(iter(max(among(letters), key=lambda x: term({**letters, **x})).values()))

    def members(self) -> Read:
        r"""Read \{i : …\}: those of the letter i's possible values for which the condition holds."""
        self.take("\\{")
        bound = self.take()
        condition = self.condition(bound)
        self.take("\\}")
        return lambda letters: tuple(x for x in letters[bound] if condition({**letters, bound: x}))

    def condition(self, bound: str) -> Read:
        if self.peek() != ":":
            return lambda letters: True
        self.take()
        left, relation, right = self.sum(), self.take(), self.sum()
        return lambda letters: related(relation, left(letters), right(letters))

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
        """Read a letter with its face or accent."""
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
        """Read a letter's name, with primes, a layer in parentheses and words below, and its indices."""
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
            elif rest[:2] == ["^", "*"]:
                self.at += 2
                word += "^*"
            elif rest[:1] == ["_"]:
                self.take()
                below, found = self.below()
                word += below
                indices += found
            else:
                break
        return word, indices

    def below(self) -> tuple[str, list[Read]]:
        """Read a subscript: words and numbers belong to the name, letters are indices, `ij` two, `<t` all before t."""
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
            if self.peek() == "<":
                self.take()
                found.append(then(self.index(), lambda last: slice(0, int(last) - 1)))
                continue
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
            found = both(self.take(), found, self.atom(alone=True))
        return found

    def name(self, alone: bool) -> Read:
        word, indices = self.bare(alone)
        if word in ("log", "exp", "sin", "cos", "tanh", "min", "max") and self.peek() not in ("(", "["):
            exponent = None
            if self.peek() == "^":
                self.take()
                exponent = self.group()
            applied = both("call", letter(word, []), self.power())
            return both("^", applied, exponent) if exponent else applied
        found = letter(word, indices)
        if self.peek() in ("(", "[") and not alone:
            return both("applied", found, self.enclosed(self.peek(), _BRACKETS[self.peek()]))
        return found
