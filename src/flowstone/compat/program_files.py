"""The files of a program: those that are named, and the modules of its own that they import.

They are read, never run. A module is the program's own if Python would find it in a folder that is named, or
beside a file that is named; installed packages are not. So `train.py` with ``from models import net`` is also
`models/__init__.py` and `models/net.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from flowstone.compat.program_names import Use, names_in, uses_in

__all__ = ["ProgramFiles"]


class ProgramFiles:
    """The files of a program, in the order in which they are met; `paths`: the files and folders named."""

    def __init__(self, paths: Iterable[Path]) -> None:
        paths = list(paths)
        self._named = [
            file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        ]
        self._roots = list(dict.fromkeys(path if path.is_dir() else path.parent for path in paths))
        self._trees: dict[Path, ast.Module] = {}
        self._names: dict[Path, dict[str, str]] = {}  # what names of a file stand for

    def __iter__(self) -> Iterator[Path]:
        waiting, met = list(self._named), set()
        while waiting:
            file = waiting.pop(0)
            if file.resolve() in met:
                continue
            met.add(file.resolve())
            yield file
            waiting[:0] = self._imported_by(file)

    def uses(self, file: Path) -> list[Use]:
        """The names of TensorFlow that it uses, by their lines. SyntaxError if it is no Python 3."""
        tree = self._tree(file)
        return uses_in(tree, self._names_in(file))

    def _tree(self, file: Path) -> ast.Module:
        if file not in self._trees:
            self._trees[file] = ast.parse(file.read_text(encoding="utf-8", errors="replace"), str(file))
        return self._trees[file]

    def _imported_by(self, file: Path) -> list[Path]:
        try:
            tree = self._tree(file)
        except SyntaxError:
            return []
        found: list[Path] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    found += self._module(file, each.name, 0)
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                found += self._module(file, module, node.level)
                for each in node.names:
                    found += self._module(file, f"{module}.{each.name}".lstrip("."), node.level)[-1:]
        return found

    def _module(self, importer: Path, module: str, level: int) -> list[Path]:
        """The files that run when a file imports a module: the packages around it, then itself; none unless
        it is the program's own."""
        parts = module.split(".") if module else []
        roots = importer.parents[level - 1 : level] if level else [*self._roots, importer.parent]
        for root in roots:
            places = [root.joinpath(*parts[:i]) for i in range(0 if level else 1, len(parts) + 1)]
            packages = [place / "__init__.py" for place in places]
            found = [file for file in packages if file.is_file()]
            if packages[-1] in found:
                return found
            if parts and (alone := places[-1].with_suffix(".py")).is_file():
                return [*found, alone]
        return []

    def _names_in(self, file: Path) -> dict[str, str]:
        """What names of TensorFlow the file's names stand for, those that it imports from others included."""
        if file not in self._names:
            self._names[file] = {}  # for modules that import each other
            tree = self._tree(file)
            self._names[file] = names_in(tree, self._imported_names(file, tree))
        return self._names[file]

    def _imported_names(self, file: Path, tree: ast.Module) -> dict[str, str]:
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            for source in self._module(file, node.module or "", node.level)[-1:]:
                try:
                    theirs = self._names_in(source)
                except SyntaxError:
                    continue
                for each in node.names:
                    if each.name == "*":
                        names.update({name: of for name, of in theirs.items() if not name.startswith("_")})
                    elif each.name in theirs:
                        names[each.asname or each.name] = theirs[each.name]
        return names
