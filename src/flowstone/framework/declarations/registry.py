"""The registry of all declared operations; those of files that few programs use are declared when needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowstone.framework.declarations.operation import OpDeclaration


class Registry:
    """All declared operations by name; a mapping.

    Files of ops that few programs use are imported late: those that may declare a name when it is asked for,
    all of them for a name that none of those declares, and for all that needs every name. `flowstone.ops`
    sets both functions.
    """

    def __init__(self) -> None:
        self._declarations: dict[str, OpDeclaration] = {}
        self._load_late: Callable[[], None] | None = None
        self._load_with: Callable[[str], None] | None = None
        self._loading = threading.RLock()
        self._is_loading = False

    def load_late_by(self, load: Callable[[], None], load_with: Callable[[str], None] | None = None) -> None:
        """Sets the function that imports the files of ops that are not imported yet, and one that imports
        those of them that may declare an op of this name.
        """
        self._load_late, self._load_with = load, load_with

    def load_late(self) -> None:
        """Imports every file of ops. TypeError if a declaration lacks an obligatory part."""
        if self._load_late is not None:
            self._load("", self._load_late)

    def _load(self, name: str, load: Callable[[], None]) -> None:
        """Imports files of ops; none if another thread has declared `name` meanwhile."""
        with self._loading:
            if self._load_late is None or self._is_loading or name in self._declarations:
                return
            known = set(self._declarations)
            self._is_loading = True
            try:
                load()
                self._check([each for key, each in self._declarations.items() if key not in known])
                if not name:
                    self._load_late = self._load_with = None
            finally:
                self._is_loading = False

    def add(self, declaration: OpDeclaration) -> OpDeclaration:
        """Registers a declaration; a name may be declared once."""
        if declaration.name in self._declarations:
            raise ValueError(f"op {declaration.name} is declared twice")
        self._declarations[declaration.name] = declaration
        return declaration

    def __getitem__(self, name: str) -> OpDeclaration:
        declaration = self.get(name)
        if declaration is None:
            raise KeyError(name)
        return declaration

    def get(self, name: str) -> OpDeclaration | None:
        """The declaration of this name, or None."""
        declaration = self._declarations.get(name)
        if declaration is None and name[:1].isupper():  # so op names begin, unlike most functions' names
            if (load_with := self._load_with) is not None:
                self._load(name, lambda: load_with(name))
            if name not in self._declarations:
                self.load_late()
            declaration = self._declarations.get(name)
        return declaration

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        self.load_late()
        return iter(self._declarations)

    def __len__(self) -> int:
        self.load_late()
        return len(self._declarations)

    def with_role(self, *roles: str) -> frozenset[str]:
        """The names of the declared operations with one of these roles."""
        return frozenset([name for name, each in self._declarations.items() if each.role in roles])

    def check_complete(self) -> None:
        """Raises TypeError if any declaration, but that of a plan's feeds, lacks an obligatory part."""
        self._check(self._declarations.values())

    @staticmethod
    def _check(declarations: Iterable[OpDeclaration]) -> None:
        for declaration in declarations:
            if declaration.role != "feed":
                declaration.check_complete()


registry = Registry()
