"""Converted Python functions, and which functions are converted at all.

A function's code is converted once (`_codes`); every function object of that code gets a new one of the
converted code, with its own closure, module, defaults and attributes. What converted code calls is converted
when it is called, to any depth, except functions of flowstone, of Python's own library and of numeric
libraries, classes, generators and what `do_not_convert` marks. A function that cannot be converted is called
as it is, with a warning.
"""

from __future__ import annotations

import ast
import dis
import functools
import operator
import sys
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any

from flowstone.conversion import operators
from flowstone.conversion.new_nodes import RUNTIME, new_function
from flowstone.conversion.rewriting import is_generator, rewritten
from flowstone.conversion.sources import NoSourceError, definition_of
from flowstone.framework.process import logging

__all__ = ["convert", "converted_function", "do_not_convert", "is_left_alone", "to_code"]

_LIBRARIES = (
    "flowstone", "keras", "ml_dtypes", "numpy", "pkg_resources", "pytest", "tensorflow", "tensorflow_core",
    "tensorflow_datasets", "tensorflow_estimator", "tensorflow_probability", "torch",
)  # fmt: skip
_LEFT_ALONE = frozenset((*_LIBRARIES, *sys.stdlib_module_names)) - {"__main__"}
_codes: weakref.WeakKeyDictionary[CodeType, CodeType] = weakref.WeakKeyDictionary()
_own: weakref.WeakSet[CodeType] = weakref.WeakSet()  # converted codes, nested ones too
_warned: weakref.WeakSet[CodeType] = weakref.WeakSet()


def convert(function: Any, options: Any = None) -> Any:
    """The converted function; itself if it is left alone or cannot be converted.

    `options`: the name of an optional feature, or several; see `entities.Feature`.
    """
    return call(function, _runtime(True, compares_tensors(options)))


def compares_tensors(options: Any) -> bool:
    """Whether optional features are among these that make ``==`` on tensors element by element."""
    given = options if isinstance(options, (list, tuple, set, frozenset)) else (options,)
    return not {"ALL", "EQUALITY_OPERATORS"}.isdisjoint(str(each) for each in given)


def call(function: Any, runtime: CellType) -> Any:
    """What converted code calls in place of `function`."""
    kind = type(function)
    if kind is FunctionType:
        return _converted_or_itself(function, runtime)
    if kind is MethodType:
        inner = call(function.__func__, runtime)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    try:
        overload = operators.OVERLOADS.get(function)
    except TypeError:  # it cannot be hashed
        overload = None
    if overload is not None:
        return overload
    if kind is functools.partial:
        return functools.partial(call(function.func, runtime), *function.args, **function.keywords)
    if isinstance(function, type):
        return function
    method = kind.__call__ if callable(function) else None
    if type(method) is FunctionType and not is_left_alone(method):
        inner = call(method, runtime)
        return function if inner is method else MethodType(inner, function)
    return function


def is_left_alone(function: FunctionType) -> bool:
    """Whether a function is never converted: it is a library's, converted already, or marked."""
    module = function.__module__ or function.__globals__.get("__name__") or ""
    return (
        module.partition(".")[0] in _LEFT_ALONE
        or function.__code__ in _own
        or getattr(function, "_is_not_to_be_converted", False)
    )


def _converted_or_itself(function: FunctionType, runtime: CellType) -> Any:
    if is_left_alone(function):
        return function
    try:
        return _with_code(function, runtime)
    except (NoSourceError, SyntaxError, ValueError) as error:
        if function.__code__ not in _warned and _may_branch(function.__code__):
            _warned.add(function.__code__)
            logging.warning(
                f"Entity {function!r} could not be transformed and will be executed as-is. Cause: {error}"
            )
        return function


def _may_branch(code: CodeType) -> bool:
    """Whether a function has jumps: without one, there is nothing in it to convert."""
    return any(each.opcode in _JUMPS for each in dis.get_instructions(code))


_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])


def converted_function(function: FunctionType, recursive: bool = True, options: Any = None) -> Any:
    """A function of the converted code of `function`. NoSourceError if its source is not there.

    `recursive`: whether what it calls is converted too.
    """
    return _with_code(function, _runtime(recursive, compares_tensors(options)))


def _with_code(function: FunctionType, runtime: CellType) -> Any:
    code = _codes.get(function.__code__)
    if code is None:
        code = _codes[function.__code__] = _converted_code(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[RUNTIME] = runtime
    module, name = function.__globals__, function.__name__
    closure = tuple(cells[each] for each in code.co_freevars)
    result = FunctionType(code, module, name, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__dict__.update(function.__dict__)
    result.__doc__, result.__module__ = function.__doc__, function.__module__
    result.__qualname__, result.__annotations__ = function.__qualname__, function.__annotations__
    return result


def _converted_code(function: FunctionType) -> CodeType:
    definition = definition_of(function)
    if is_generator(definition):
        raise NoSourceError(f"{function!r} is a generator or a coroutine")
    tree = rewritten(definition)
    code = compile(_module(tree, function), function.__code__.co_filename, "exec")
    (factory,) = [each for each in code.co_consts if isinstance(each, CodeType)]
    (found,) = [each for each in factory.co_consts if isinstance(each, CodeType)]
    found = found.replace(co_name=function.__code__.co_name)
    _note(found)
    return found


def _module(tree: Any, function: FunctionType) -> ast.Module:
    """A module with one function around the converted one, whose variables are its free variables."""
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list = []
        _drop_surroundings(tree.args)
        tree.returns = None
        tree.name = f"ag__{tree.name}"  # so that a global function that calls itself is looked up globally
        inner: Any = tree
    else:
        _drop_surroundings(tree.args)
        inner = ast.copy_location(ast.Expr(tree), tree)
    free = sorted({*function.__code__.co_freevars, RUNTIME})
    factory = new_function("ag__factory", free, [inner])
    factory.lineno = factory.col_offset = 0
    module = ast.Module([ast.copy_location(factory, tree)], [])
    return ast.fix_missing_locations(module)


def _drop_surroundings(arguments: ast.arguments) -> None:
    """Leaves out what is computed outside of the function: values of defaults, annotations."""
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if each is None else ast.Constant(None) for each in arguments.kw_defaults]
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for each in (*named, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None


def _note(code: CodeType) -> None:
    _own.add(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            _note(each)


@functools.cache
def _runtime(recursive: bool, compares: bool) -> CellType:
    """What the converted code of a function finds under `RUNTIME`."""
    names = {name: getattr(operators, name) for name in operators.__all__ if name != "OVERLOADS"}
    if not compares:
        names["eq"], names["not_eq"] = operator.eq, operator.ne
    cell = CellType()

    def called(function: Any) -> Any:
        if not recursive and type(function) in (FunctionType, MethodType):
            return function
        return call(function, cell)

    cell.cell_contents = SimpleNamespace(**names, call=called)
    return cell


def to_code(function: FunctionType) -> str:
    """The source of the converted function."""
    tree = rewritten(definition_of(function))
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list, tree.name = [], f"tf__{tree.name}"
    return ast.unparse(tree) + "\n"


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """A function that calls `func` as it is, also from converted code; without one, a decorator."""
    if func is None:
        return do_not_convert
    if not isinstance(func, (FunctionType, MethodType)):
        return func  # it never is

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    unconverted._is_not_to_be_converted = True  # type: ignore[attr-defined]
    return unconverted
