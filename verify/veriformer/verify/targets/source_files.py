"""Python files as modules: those of a package by its name, and programs by their definitions alone."""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib
import importlib.util
import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from veriformer.verify.results.foreign import message_of

_ABOVE = 6
"""Maximum number of folders above a file that are searched for its imports."""

_LIBRARIES = frozenset(("torch", "math", "np", "numpy", "os", "sys", "nn", "F", "functools", "partial", "logging"))
_DEFINING = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
_PLAIN_CALLS = frozenset(("dict", "list", "tuple", "set", "int", "float", "str", "range", "len", "min", "max", "round"))


def module_of(path: Path) -> ModuleType:
    """Import the module in a file, with the exceptions of that import.

    A file of a package is imported as part of it, and where the package cannot be imported whole (a dependency of other
    files is missing) with those of its files alone that this one imports. What it imports is sought beside it and in
    the folders above.
    """
    try:
        return _with_neighbours(path)
    except Exception:
        module = _within_bare_packages(path)
        if module is None:
            raise
        return module


def _with_neighbours(path: Path) -> ModuleType:
    """Import a file; folders above it are added to ``sys.path`` as imports need them."""
    tried: set[str] = set()
    while True:
        try:
            return _imported(path)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            folder = next((a for a in _folders(path) if missing and _holds(a, missing)), None)
            if missing in tried or folder is None or str(folder) in sys.path:
                raise
            tried.add(missing)
            sys.path.insert(0, str(folder))
        except FileNotFoundError as error:
            missing = str(error.filename)
            folder = next((a for a in _folders(path) if (a / missing).exists()), None)
            if missing in tried or folder is None or folder == Path.cwd():
                raise
            tried.add(missing)
            with contextlib.chdir(folder):  # it is started from there
                return _imported(path)


def _imported(path: Path) -> ModuleType:
    above, parts = _place_in_package(path)
    if parts:
        if str(above) not in sys.path:
            sys.path.insert(0, str(above))
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        if Path(getattr(module, "__file__", None) or "").resolve() == path:  # else another package has this name
            return module
    return _executed(path)


def _place_in_package(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the folder above a file's outermost package, and the dotted name in parts; none outside packages."""
    if not (path.parent / "__init__.py").is_file():
        return path.parent, ()
    root = path.parent
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    parts = path.relative_to(root.parent).with_suffix("").parts
    return root.parent, parts if all(part.isidentifier() for part in parts) else ()


def _within_bare_packages(path: Path) -> ModuleType | None:
    """Import a file within packages whose own ``__init__`` is not run; None where that fails too."""
    above, parts = _place_in_package(path)
    if not parts or parts[-1] == "__init__":
        return None
    made: list[str] = []
    for length in range(1, len(parts)):
        name = ".".join(parts[:length])
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(above.joinpath(*parts[:length]))]
            sys.modules[name] = package
            made.append(name)
    try:
        return importlib.import_module(".".join(parts)) if made else None
    except Exception:
        for name in made:
            del sys.modules[name]
        return None


def _executed(path: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(_free_name(path), path)
    if found is None or found.loader is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(found)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # a file may import its neighbours, as a script may
    sys.modules.setdefault(module.__name__, module)
    found.loader.exec_module(module)
    return module


def _free_name(path: Path) -> str:
    """Return the file's stem, numbered where another file has it: a class finds its module by name."""
    names = itertools.chain([path.stem], (f"{path.stem}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in sys.modules or _file_of(sys.modules[name]) == path.resolve())


def file_alone(thing: object) -> Path | None:
    """Return the file of a module that is a single Python file outside packages; None otherwise."""
    if not isinstance(thing, ModuleType) or "." in thing.__name__ or hasattr(thing, "__path__"):
        return None
    file = _file_of(thing)
    return file if file is not None and file.suffix == ".py" else None


def name_of(thing: object) -> str:
    """Return the display name of an implementation: for a module that is one file the file's, whatever it is registered
    as."""
    file = file_alone(thing)
    return file.stem if file else str(getattr(thing, "__name__", ""))


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _folders(path: Path) -> list[Path]:
    return list(path.parents)[:_ABOVE]


def _holds(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def is_program(path: Path) -> bool:
    """Return whether importing the file would run a program: it loops at its top level, and not to fill a table."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return False
    loops = [node for node in tree.body if isinstance(node, ast.For | ast.While | ast.AsyncFor)]
    return any(not _fills_a_table(node, _own_functions(tree)) for node in loops)


class PartlyLoadedWarning(UserWarning):
    """A file of which only a part could be loaded, with the reason and what was left out."""


_PROGRAM = "it is a program"


def definitions_of(path: Path, because: str = _PROGRAM) -> ModuleType:
    """Execute only the imports, functions, classes and plain constants of a file; return the module.

    What cannot be imported, or defined without the rest, is left out, which a PartlyLoadedWarning says. because: why
    the file is not imported. Raises SyntaxError for what is no Python.
    """
    module = ModuleType(_free_name(path))
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules.setdefault(module.__name__, module)
    left: dict[str, str] = {}
    for node in _definitions(ast.parse(path.read_bytes(), str(path))):
        try:
            # Names that stand in annotations alone are not needed.
            flags = __future__.annotations.compiler_flag
            exec(compile(ast.Module([node], []), str(path), "exec", flags, dont_inherit=True), vars(module))
        except Exception as error:  # what it rests on is not there
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                left[node.name] = message_of(error)
            elif isinstance(node, ast.ImportFrom):
                _import_definitions(node, path, module)
    without = f"; without {', '.join(left)} ({next(iter(left.values()))})" if left else ""
    message = f"{path.name} is not imported ({because}): its definitions are looked at by themselves{without}"
    if left or because != _PROGRAM:
        warnings.warn(message, PartlyLoadedWarning, stacklevel=2)
    return module


def _import_definitions(node: ast.ImportFrom, path: Path, module: ModuleType) -> None:
    """Import the names that a file takes from its neighbour, where that one cannot be imported whole either."""
    other = _neighbour(node, path)
    if other is None or other == path:
        return
    with warnings.catch_warnings(), contextlib.suppress(SyntaxError, RecursionError):
        warnings.simplefilter("ignore", PartlyLoadedWarning)
        found = vars(definitions_of(other))
        names = [(name, name) for name in found if name[:1] != "_"]
        if node.names[0].name != "*":
            names = [(one.name, one.asname or one.name) for one in node.names]
        vars(module).update({new: found[name] for name, new in names if name in found})


def _neighbour(node: ast.ImportFrom, path: Path) -> Path | None:
    """Return the file that an import means: below the folder of its dots, or below some folder above the file."""
    if not node.module:
        return None
    below = Path(*node.module.split(".")).with_suffix(".py")
    folders = _folders(path) if node.level == 0 else [path.parents[node.level - 1]]
    return next((folder / below for folder in folders if (folder / below).is_file()), None)


def _definitions(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield imports, functions, classes, loops that fill tables, and constants that libraries and plain types make.

    Where a function or class of the file reads a constant, the file's own functions may make it too.
    """
    own, read = _own_functions(tree), _read_inside(tree)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            if _calls_only(node.value, own if _bound(node) & read else frozenset()):
                yield node
        elif isinstance(node, ast.Try):
            if all(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body):
                yield node
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) or _fills_a_table(
            node, own
        ):
            yield node


def _own_functions(tree: ast.Module) -> frozenset[str]:
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def _read_inside(tree: ast.Module) -> set[str]:
    inside = [one for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) for one in ast.walk(node)]
    return {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _bound(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _fills_a_table(node: ast.stmt, own: frozenset[str]) -> bool:
    """Return whether a statement is a loop that only assigns results of libraries, plain types and own functions."""
    if not isinstance(node, ast.For):
        return False
    inside = [one for one in ast.walk(node) if isinstance(one, ast.stmt) and one is not node]
    assigns = all(isinstance(one, ast.For | ast.If | ast.Assign | ast.AugAssign | ast.AnnAssign) for one in inside)
    return assigns and _calls_only(node, own)


def _calls_only(tree: ast.AST, own: frozenset[str]) -> bool:
    """Return whether all calls in it are of libraries, plain types and these functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name) or root.id not in _LIBRARIES | _PLAIN_CALLS | own:
                return False
    return True
