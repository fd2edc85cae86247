"""Formulas as a terminal shows them: LaTeX as one line of Unicode text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_ALONE = re.compile(r"[√∂]*[\w.\u0300-\u036f]+([_^](\w|\{\w+\}|\{?\ue000\w*\ue001\}?))?|\|[^|]*\|")
_OWN = {
    "odot": "⊙",
    "mid": "|",
    "lVert": "‖",
    "rVert": "‖",
    "|": "‖",
    "gets": "←",
    "top": "T",
    "setminus": "∖",
    "{": "\ue002",
    "}": "\ue003",
}
_FIRST, _LAST = "\ue000", "\ue001"
"""They enclose words, in which nothing is raised, until the rest is done."""


def unicode_text(latex: str) -> str:
    r"""Convert a LaTeX formula to Unicode: `\frac{e^{z_i}}{d_k}` becomes e^zᵢ/dₖ; other scripts stay as x^(y)."""
    latex = re.sub(r"\\substack\{(.*?)\\\\(.*?)\}", r"\1,\2", latex)
    # The converter knows no arguments of \operatorname, in which SymPy sets the names of functions.
    text: str = _converter().latex_to_text(latex.replace(r"\operatorname", r"\mathrm"))
    words: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        words.append(match[1])
        return chr(0xE100 + len(words) - 1)

    text = re.sub(f"{_FIRST}([^{_LAST}]*){_LAST}", put_aside, text)
    while (raised := re.sub(r"([_^])(?:\{([^{}]*)\}|([^{}\s]))", _raised, text)) != text:
        text = re.sub(r"(?<![_^])\{([^{}]*)\}", r"\1", raised)
    text = re.sub(r"[{}]", "", text).replace("\ue002", "{").replace("\ue003", "}").replace("\ue004", "_")
    text = re.sub(r"(?<![^\W\d_])(log|exp|max|min)(?=[^\W_])", r"\1 ", text.replace("\ue005", "^"))
    text = re.sub(r"\s*([⋅·⊙×∈≈≤≥←∼⊕⊗])\s*", r" \1 ", text)
    text = re.sub(r"(?<=[(\[])\s+|\s+(?=[)\]])", "", text)
    text = re.sub("[\ue100-\uefff]", lambda m: words[ord(m[0]) - 0xE100], text)
    return " ".join(text.replace("”", "″").split())


def in_sentence(sentence: str) -> str:
    """Convert a sentence's formulas, LaTeX between dollars, to Unicode."""
    return re.sub(r"\$(.+?)\$", lambda m: unicode_text(m[1]), sentence)


def _raised(match: re.Match[str]) -> str:
    """Return a script in small letters where Unicode has all of them; else a word as it is, others in brackets."""
    import unicodeit

    mark, inner = match[1], (match[2] if match[2] is not None else match[3]).strip()
    inner = inner.replace(" ", "") if re.fullmatch(r"\w( \w)+", inner) else inner
    if re.fullmatch(r"[\w+\-=(), ]+", inner) and not re.search("[<>\ue100-\uefff]", inner):
        small = unicodeit.replace(f"{mark}{{{inner}}}")
        if not re.search(r"[_^{}]", small) and len(small) == len(inner):
            return str(small)
    kept = "\ue004" if mark == "_" else "\ue005"
    return kept + (inner if re.fullmatch(r"\w+|[\ue100-\uefff]|\*|\([^()]*\)", inner) else f"({inner})")


def _bracketed(text: str) -> str:
    return text if _ALONE.fullmatch(text) else f"({text})"


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    def argument(node: Any, to_text: Any, k: int, strip: bool = True) -> str:
        text = to_text.nodelist_to_text([node.nodeargd.argnlist[k]])
        text = text[1:-1] if text.startswith("{") and text.endswith("}") else text
        return str(text).strip() if strip else str(text)

    def fraction(node: Any, l2tobj: Any) -> str:
        return "/".join(_bracketed(argument(node, l2tobj, k)) for k in (0, 1))

    def root(node: Any, l2tobj: Any) -> str:
        return f"√{_bracketed(argument(node, l2tobj, 1))}"

    def plain(node: Any, l2tobj: Any) -> str:
        return argument(node, l2tobj, -1)

    def word(node: Any, l2tobj: Any) -> str:
        return _FIRST + re.sub(r"[{}]", "", argument(node, l2tobj, -1, strip=False)) + _LAST

    macros: Sequence[Any] = [
        MacroTextSpec("frac", fraction),
        MacroTextSpec("sqrt", root),
        MacroTextSpec("mathbf", plain),
        *(MacroTextSpec(name, word) for name in ("text", "mathrm", "mathit")),
        *(MacroTextSpec(name, text) for name, text in _OWN.items()),
    ]
    context = get_default_latex_context_db()
    context.add_context_category("formulas", prepend=True, macros=macros)
    return LatexNodes2Text(latex_context=context, math_mode="text", keep_braced_groups=True, strict_latex_spaces=False)
