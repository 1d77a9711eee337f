"""Functions of tensors that are combined with operators before there is a tensor.

`f | g` applies f, then g; `f + g` and `f * g` combine the results of both for the same argument; `f ** 3` is
`f | f | f`. A `Function` called with arguments is another Function with more of them bound.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable as AnyCallable
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = [
    "KEYWORDS",
    "QUOTED",
    "Callable",
    "Composable",
    "Composition",
    "External",
    "Function",
    "Import",
    "Operator",
    "check_keywords",
    "debug",
    "debug_",
    "get_positional",
]

# What a spec does not contain outside of its strings.
KEYWORDS = re.compile(r"\b(import|while|def|exec)\b")
QUOTED = re.compile(r"""("{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", re.DOTALL)

debug_ = False


def debug(mode: bool = True) -> None:
    """Has each function print itself and its argument when it is applied, or no longer."""
    global debug_
    debug_ = mode


def check_keywords(spec: str) -> None:
    """Raises ValueError if a spec has one of the keywords import, while, def and exec outside of strings."""
    found = KEYWORDS.search(QUOTED.sub("''", spec))
    if found:
        raise ValueError(f"keyword {found.group(1)!r} found in spec")


def get_positional(
    args: Sequence[Any], kw: Mapping[str, Any], kw_overrides: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments in which keywords ``_0``, ``_1`` … have become the positional arguments of these numbers.

    Args:
        args: positional arguments; None counts as not given.
        kw: keyword arguments.
        kw_overrides: whether a number replaces a positional argument that is given.

    Returns the list of positional arguments and the rest of the keyword arguments.
    """
    positional, rest = list(args), dict[str, Any]()
    for name, value in kw.items():
        if not re.fullmatch(r"_\d+", name):
            rest[name] = value
            continue
        position = int(name[1:])
        positional.extend([None] * (position + 1 - len(positional)))
        if kw_overrides or positional[position] is None:
            positional[position] = value
    return positional, rest


class Composable:
    """What can be combined by operators. Subclasses have `funcall`, which applies them."""

    def __or__(self, g: Any) -> Composition:
        return Composition(self, g)

    def __add__(self, g: Any) -> Operator:
        return Operator(operator.add, self, g)

    def __mul__(self, g: Any) -> Operator:
        return Operator(operator.mul, self, g)

    def __pow__(self, n: int) -> Composable:
        result: Composable = Function(lambda x, *args: x)
        for _ in range(n):
            result = Composition(result, self)
        return result


class Callable(Composable):
    """A function of a tensor as it is.

    Args:
        f: the function.
    """

    def __init__(self, f: AnyCallable[..., Any]) -> None:
        self.f = f

    def funcall(self, x: Any) -> Any:
        """The function's result for `x`."""
        return self.f(x)


class Operator(Composable):
    """An operator applied to the results of several functions for one argument.

    Args:
        op: a function of as many arguments.
        args: Composable objects.
    """

    def __init__(self, op: AnyCallable[..., Any], *args: Any) -> None:
        self.op = op
        self.funs = args

    def funcall(self, x: Any) -> Any:
        """The operator's result for what the functions give for `x`."""
        return self.op(*(f.funcall(x) for f in self.funs))


class Composition(Composable):
    """One function applied after another.

    Args:
        f: what is applied first.
        g: what is applied to the first one's result.
    """

    def __init__(self, f: Any, g: Any) -> None:
        self.f = f
        self.g = g

    def funcall(self, x: Any) -> Any:
        """What `g` gives for the result of `f` for `x`."""
        return self.g.funcall(self.f.funcall(x))


class Function(Composable):
    """A function of a tensor with further arguments.

    Args:
        f: a function, the first argument of which is the tensor.
        args: the arguments after the tensor; keywords ``_1``, ``_2`` … number them too.
        kw: keyword arguments.

    Raises ValueError if `f` cannot be called.
    """

    def __init__(self, f: Any, *args: Any, **kw: Any) -> None:
        if not callable(f):
            raise ValueError(f"{f}: is not callable")
        self.f = f
        self.args = list(args)
        self.kw = kw

    def __call__(self, *args: Any, **kw: Any) -> Function:
        return Function(self.f, *args, *self.args, **{**self.kw, **kw})

    def funcall(self, x: Any) -> Any:
        """The function's result for `x` and the bound arguments."""
        args, kw = get_positional([x, *self.args], self.kw)
        if debug_:
            print("DEBUG:", self.f, args, kw)
        return self.f(*args, **kw)


def External(module_name: str, function_name: str) -> Function:
    """The function `function_name` of a module, which is imported."""
    return Function(getattr(import_module(module_name), function_name))


def Import(statements: str) -> Function:
    """The function `f` that statements of Python define; ValueError if they define none."""
    environment: dict[str, Any] = {}
    exec(statements, environment)
    if "f" not in environment:
        raise ValueError(f"failed to define 'f': {statements}")
    return Function(environment["f"])
