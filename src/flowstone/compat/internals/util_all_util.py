"""`tensorflow.python.util.all_util`: which names of a module are documented."""

from __future__ import annotations

import inspect
import sys
from typing import Any

__all__ = ["make_all", "remove_undocumented", "reveal_undocumented"]


def remove_undocumented(
    module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None
) -> None:
    """Does nothing: a program's own modules keep their names."""


def reveal_undocumented(symbol_name: str, target_module: Any = None) -> None:
    """Does nothing: no name has been hidden."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names that the module `module_name` defines itself: functions and classes."""
    module = sys.modules[module_name]
    defined = inspect.getmembers(module, lambda each: inspect.isclass(each) or inspect.isroutine(each))
    return [name for name, each in defined if not name.startswith("_") and each.__module__ == module_name]
