"""What Python 3.5 had in its library and Python 3.10 to 3.13 have no more."""

from __future__ import annotations

import base64
import collections
import collections.abc
import html
import importlib
import importlib.util
import inspect
import math
import os
import sys
import threading
import time
import types
import unittest
from types import ModuleType
from typing import Any

from flowstone.compat.older_python.late_modules import add_missing, complete, replace

__all__ = ["install", "older_names"]

_ABSTRACT = """
    Awaitable AsyncIterable AsyncIterator Callable Container Coroutine Generator Hashable ItemsView Iterable
    Iterator KeysView Mapping MappingView MutableMapping MutableSequence MutableSet Sequence Set Sized
    ValuesView
"""

ArgSpec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])


def _getargspec(func: Any) -> Any:
    """The positional arguments of a function. ValueError for one with keyword-only arguments."""
    spec = inspect.getfullargspec(func)
    if spec.kwonlyargs:
        raise ValueError("Function has keyword-only parameters: use inspect.getfullargspec()")
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def _encodestring(s: bytes) -> bytes:
    return base64.encodebytes(s)


def _decodestring(s: bytes) -> bytes:
    return base64.decodebytes(s)


# ---- modules


def _fill_imp(module: ModuleType) -> None:
    """The module `imp` of Python up to 3.11, as far as programs load modules by it."""

    def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, pathname)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    def find_module(name: str, path: Any = None) -> Any:
        for folder in path or sys.path:
            for candidate in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name, "__init__.py")):
                if os.path.exists(candidate):
                    return None, candidate, (".py", "r", 1)
        raise ImportError(f"No module named {name!r}", name=name)

    def load_module(name: str, file: Any, filename: str, details: Any) -> ModuleType:
        return load_source(name, filename)

    add_missing(
        module,
        {
            "find_module": find_module,
            "load_module": load_module,
            "load_source": load_source,
            "new_module": types.ModuleType,
            "reload": importlib.reload,
        },
    )


def _fill_cgi(module: ModuleType) -> None:
    add_missing(module, {"escape": lambda s, quote=False: html.escape(s, quote)})


def _fill_distutils(module: ModuleType) -> None:
    """The package `distutils` as setuptools has it, whose modules are then found below it."""
    found = importlib.import_module("setuptools._distutils")
    module.__path__ = list(found.__path__)
    vars(module).update({name: value for name, value in vars(found).items() if not name.startswith("__")})


def _fill_pipes(module: ModuleType) -> None:
    add_missing(module, {"quote": importlib.import_module("shlex").quote})


# ---- all


def _add_to_test_cases() -> None:
    names = {
        "assertEquals": "assertEqual",
        "assertItemsEqual": "assertCountEqual",
        "assertNotEquals": "assertNotEqual",
        "assertAlmostEquals": "assertAlmostEqual",
        "assertNotAlmostEquals": "assertNotAlmostEqual",
        "assertRaisesRegexp": "assertRaisesRegex",
        "assertRegexpMatches": "assertRegex",
        "assertNotRegexpMatches": "assertNotRegex",
        "assert_": "assertTrue",
        "failUnless": "assertTrue",
        "failIf": "assertFalse",
    }
    for old, new in names.items():
        if not hasattr(unittest.TestCase, old):
            setattr(unittest.TestCase, old, getattr(unittest.TestCase, new))


def older_names() -> dict[str, dict[str, Any]]:
    """What modules of the library had, by the module's name: for each, objects by their names."""
    return {
        "asyncio": {"coroutine": types.coroutine},
        "base64": {"encodestring": _encodestring, "decodestring": _decodestring},
        "collections": {name: getattr(collections.abc, name) for name in _ABSTRACT.split()},
        "fractions": {"gcd": math.gcd},
        "inspect": {"getargspec": _getargspec, "ArgSpec": ArgSpec},
        "os": {"getcwdu": os.getcwd},
        "time": {"clock": time.perf_counter},
    }


def install() -> None:
    """Gives the names back, as far as this Python lacks them."""
    for module, names in older_names().items():
        add_missing(importlib.import_module(module), names)
    thread: Any = threading.Thread
    if not hasattr(thread, "isAlive"):
        thread.isAlive = thread.is_alive
    _add_to_test_cases()
    complete("cgi", _fill_cgi)
    replace("cgi", _fill_cgi)
    replace("distutils", _fill_distutils)
    replace("imp", _fill_imp)
    replace("pipes", _fill_pipes)
