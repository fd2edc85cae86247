"""Hooks of MkDocs: pages that are made from the code, and files of the repository that pages link to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
ROOT = HERE.parent
OF_THE_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Pages that stand at the root of the repository, where people look for them, by their place in the site."""

_MADE = "<!-- made from the code -->"
LINKED = ("LICENSE", "verify/field/*.tsv", "verify/field/reports/*.md")
"""Files elsewhere in the repository that pages link to."""


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, the pages of the root and the files that are linked."""
    made = _reference().pages() | {
        place: (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](") for name, place in OF_THE_ROOT.items()
    }
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    for file in (one for pattern in LINKED for one in sorted(ROOT.glob(pattern))):
        files.append(File.generated(config, file.relative_to(ROOT).as_posix(), abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put in what is made from the code; let links out of ``docs`` lead to where those files are in the site."""
    place = page.file.src_uri
    if _MADE in markdown:
        return markdown.replace(_MADE, _tables()[place])
    up = "../" * place.count("/")
    return markdown.replace(f"](../{up}", f"]({up}")


@cache
def _reference() -> Any:
    sys.path.insert(0, str(HERE))
    return importlib.import_module("reference")


@cache
def _tables() -> Mapping[str, str]:
    found: Mapping[str, str] = _reference().tables()
    return found
