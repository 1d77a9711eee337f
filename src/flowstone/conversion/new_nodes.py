"""Nodes of syntax trees that converted code gets: names of the runtime, tests of flags, functions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

__all__ = ["RUNTIME", "arguments_of", "new_function", "none_of", "runtime"]

RUNTIME = "ag__"
"""What converted code calls `operators` by."""


def runtime(name: str) -> ast.expr:
    """An operator by its name."""
    return ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())


def none_of(flags: Sequence[str]) -> ast.expr:
    """``not a and not b …`` of variables."""
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())) for flag in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def arguments_of(*names: str) -> ast.arguments:
    """Parameters without defaults."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def new_function(name: str, parameters: Sequence[str], body: list[Any]) -> Any:
    """A function's definition, in any version of Python's syntax."""
    function = ast.FunctionDef(name, arguments_of(*parameters), body, [])
    if hasattr(function, "type_params"):
        function.type_params = []
    return function
