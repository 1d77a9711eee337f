"""The syntax tree of a Python function, found in the file that it was written in.

A file is parsed once. A function's definition begins on the line that its code names; of several lambdas on
one line it is the one whose code, compiled anew, is the function's. If there is none, because what stands
there is not what was compiled, no source is better than that of another function.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import operator
from types import CodeType, FunctionType
from typing import Any

from flowstone.conversion.new_nodes import new_function

__all__ = ["NoSourceError", "definition_of"]

_parsed: dict[str, tuple[str, ast.Module]] = {}  # by file its text and tree
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_Definition = ast.FunctionDef | ast.Lambda


class NoSourceError(Exception):
    """A function whose source is not there, or not the one that it was compiled from."""


def definition_of(function: FunctionType) -> _Definition:
    """The node of a function's definition, which is not to be changed. NoSourceError if there is none."""
    code = function.__code__
    tree = _tree(code.co_filename, function.__globals__)
    found = [node for node in ast.walk(tree) if _begins(node) == code.co_firstlineno and _is_like(node, code)]
    if len(found) > 1:
        found = [node for node in found if _compiles_to(node, code)]
    if not found:
        raise NoSourceError(f"the source of {function!r} is not in {code.co_filename}")
    return found[0]  # type: ignore[return-value]


def _tree(filename: str, module: dict[str, Any]) -> ast.Module:
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, module))
    if not text:
        raise NoSourceError(f"the source file {filename} is not there")
    known = _parsed.get(filename)
    if known is None or known[0] != text:
        try:
            known = _parsed[filename] = text, ast.parse(text)
        except SyntaxError as error:
            raise NoSourceError(f"{filename} does not parse: {error}") from error
    return known[1]


def _begins(node: ast.AST) -> int:
    """The line that a function's code says it begins on: that of its first decorator."""
    decorators = getattr(node, "decorator_list", None)
    return decorators[0].lineno if decorators else getattr(node, "lineno", 0)


def _is_like(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and _argument_names(node.args) == _names_of(code)
    return isinstance(node, ast.FunctionDef) and node.name == code.co_name


def _argument_names(arguments: ast.arguments) -> tuple[str, ...]:
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _names_of(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _compiles_to(node: Any, code: CodeType) -> bool:
    """Whether a lambda has this code, where the same names are free."""
    surrounding = new_function("surrounding", code.co_freevars, [ast.Return(node)])
    module = ast.fix_missing_locations(ast.Module([surrounding], []))
    outer = compile(module, "", "exec", code.co_flags & _FUTURES, dont_inherit=True).co_consts[0]
    return any(_meaning(each) == _meaning(code) for each in outer.co_consts if isinstance(each, CodeType))


def _meaning(code: CodeType) -> tuple[Any, ...]:
    """All of a code but where it stands, and how deep."""
    constants = [_meaning(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    flags = code.co_flags & ~inspect.CO_NESTED
    return code.co_code, flags, code.co_argcount, code.co_kwonlyargcount, names, constants
