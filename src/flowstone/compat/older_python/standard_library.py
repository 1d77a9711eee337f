"""What Python 3.5 had in its library and Python 3.10 to 3.13 have no more."""

from __future__ import annotations

import base64
import collections
import collections.abc
import errno
import html
import importlib
import importlib.util
import inspect
import math
import os
import platform
import sys
import threading
import time
import types
import unittest
from types import ModuleType
from typing import Any

from flowstone.compat.older_python.late_modules import add_missing, complete, replace
from flowstone.compat.older_python.number_slots import change_type

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


def _formatargspec(
    args: Any, varargs: Any = None, varkw: Any = None, defaults: Any = None, kwonlyargs: Any = (),
    kwonlydefaults: Any = None, annotations: Any = None,
) -> str:  # fmt: skip
    """The arguments of a function as text in parentheses."""

    def shown(name: str, default: Any = inspect.Parameter.empty) -> str:
        noted = inspect.Parameter.empty if name not in (annotations or {}) else annotations[name]
        return str(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=noted))

    without = len(args) - len(defaults or ())
    parts = [shown(each) for each in args[:without]]
    parts += [shown(*each) for each in zip(args[without:], defaults or ())]
    if varargs or kwonlyargs:
        parts.append(f"*{shown(varargs) if varargs else ''}")
    parts += [
        shown(each, (kwonlydefaults or {}).get(each, inspect.Parameter.empty)) for each in kwonlyargs or ()
    ]
    if varkw:
        parts.append(f"**{shown(varkw)}")
    returned = (
        f" -> {inspect.formatannotation(annotations['return'])}" if "return" in (annotations or {}) else ""
    )
    return f"({', '.join(parts)}){returned}"


def _linux_distribution(*arguments: Any, **keywords: Any) -> tuple[str, str, str]:
    """(name, version, code name) of this Linux; empty on other systems."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return "", "", ""
    return found["NAME"], found.get("VERSION_ID", ""), found.get("VERSION_CODENAME", "")


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


def _fill_configparser(module: ModuleType) -> None:
    parser = module.ConfigParser
    add_missing(module, {"SafeConfigParser": parser})
    if not hasattr(parser, "readfp"):
        parser.readfp = parser.read_file


def _fill_html(module: ModuleType) -> None:
    if not hasattr(module.HTMLParser, "unescape"):
        module.HTMLParser.unescape = staticmethod(html.unescape)


def _fill_locale(module: ModuleType) -> None:
    add_missing(module, {"format": module.format_string})


def _fill_element_tree(module: ModuleType) -> None:
    def getchildren(self: Any) -> list[Any]:
        return list(self)

    def getiterator(self: Any, tag: Any = None) -> list[Any]:
        return list(self.iter(tag))

    if not hasattr(module.Element, "getchildren"):
        change_type(module.Element, {"getchildren": getchildren, "getiterator": getiterator}, (), object)
        module.ElementTree.getiterator = getiterator


def _fill_c_element_tree(module: ModuleType) -> None:
    vars(module).update(vars(importlib.import_module("xml.etree.ElementTree")))


def _fill_array(module: ModuleType) -> None:
    kind = module.array
    if not hasattr(kind, "tostring"):
        names = {"tostring": kind.tobytes, "fromstring": kind.frombytes}
        change_type(kind, names, (), object)


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
        "base64": {"encodestring": _encodestring, "decodestring": _decodestring},
        "collections": {name: getattr(collections.abc, name) for name in _ABSTRACT.split()},
        "fractions": {"gcd": math.gcd},
        "inspect": {"getargspec": _getargspec, "ArgSpec": ArgSpec, "formatargspec": _formatargspec},
        "os": {"getcwdu": os.getcwd, "errno": errno},
        "platform": {"linux_distribution": _linux_distribution, "dist": _linux_distribution},
        "sys": {"setcheckinterval": lambda n: None, "getcheckinterval": lambda: 100},
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
    complete("array", _fill_array)
    complete("asyncio", lambda module: add_missing(module, {"coroutine": types.coroutine}))
    complete("cgi", _fill_cgi)
    complete("configparser", _fill_configparser)
    complete("html.parser", _fill_html)
    complete("locale", _fill_locale)
    complete("xml.etree.ElementTree", _fill_element_tree)
    replace("cgi", _fill_cgi)
    replace("distutils", _fill_distutils)
    replace("imp", _fill_imp)
    replace("pipes", _fill_pipes)
    replace("xml.etree.cElementTree", _fill_c_element_tree)
