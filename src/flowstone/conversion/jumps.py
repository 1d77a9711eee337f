"""`break`, `continue` and `return` as flags, so that every statement is followed by the next one.

What follows an `if` of which one branch jumps moves into the other branch. Elsewhere what follows a
statement that may have jumped stands below ``if not flag``, and a loop's test asks for the flag. Returns are
only lowered if one is inside an `if` or a loop: the value is ``ag__value`` then, and the function ends in
one return.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.conversion.new_nodes import none_of, runtime

__all__ = ["RETURNED", "VALUE", "lower_jumps"]

RETURNED, VALUE = "ag__returned", "ag__value"
_LOOPS = (ast.For, ast.While)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def lower_jumps(function: ast.FunctionDef) -> None:
    """Lowers all jumps of a function, in place."""
    counter = [0]
    function.body = _lower_loops(function.body, counter)
    if not any(_returns_inside(statement) for statement in function.body):
        return
    lower = _Lowering((ast.Return,), _returned, (RETURNED,), into_loops=True)
    start = [_assign(RETURNED, ast.Constant(False)), _assign(VALUE, runtime("no_value"))]
    end = ast.Return(ast.Call(runtime("returned"), [ast.Name(VALUE, ast.Load())], []))
    function.body = [*start, *lower.block(function.body), end]


def _returns_inside(statement: Any) -> bool:
    """Whether a return is inside an `if` or a loop."""
    if isinstance(statement, (ast.If, *_LOOPS)):
        return _contains(statement, (ast.Return,), True)
    if isinstance(statement, _NESTED):
        return False
    return any(_returns_inside(child) for child in ast.iter_child_nodes(statement))


def _contains(node: Any, kinds: tuple[type, ...], into_loops: bool) -> bool:
    if isinstance(node, kinds):
        return True
    if isinstance(node, _NESTED) or (isinstance(node, _LOOPS) and not into_loops):
        return False
    return any(_contains(child, kinds, into_loops) for child in ast.iter_child_nodes(node))


def _lower_loops(statements: Sequence[Any], counter: list[int]) -> list[Any]:
    """Lowers break, continue and else of all loops, the innermost first."""
    found: list[Any] = []
    for statement in statements:
        if isinstance(statement, _NESTED):
            found.append(statement)
            continue
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(statement, field, None), list):
                setattr(statement, field, _lower_loops(getattr(statement, field), counter))
        for handler in getattr(statement, "handlers", ()):
            handler.body = _lower_loops(handler.body, counter)
        found += _lower_loop(statement, counter) if isinstance(statement, _LOOPS) else [statement]
    return found


def _lower_loop(loop: Any, counter: list[int]) -> list[Any]:
    counter[0] += 1
    broke, skipped = f"ag__broke_{counter[0]}", f"ag__skipped_{counter[0]}"
    has_break = any(_contains(each, (ast.Break,), False) for each in loop.body)
    has_continue = any(_contains(each, (ast.Continue,), False) for each in loop.body)
    after, loop.orelse = loop.orelse, []
    if has_break or has_continue:
        flags = [broke] * has_break + [skipped] * has_continue
        jump = _jump({ast.Break: broke, ast.Continue: skipped})
        loop.body = _Lowering((ast.Break, ast.Continue), jump, tuple(flags), into_loops=False).block(
            loop.body
        )
    if has_continue:
        loop.body.insert(0, _assign(skipped, ast.Constant(False)))
    if not has_break:
        return [loop, *after]
    _stop_at(loop, broke)
    return [_assign(broke, ast.Constant(False)), loop, *([_unless((broke,), after)] if after else [])]


def _stop_at(loop: Any, flag: str) -> None:
    """Has a loop end once the flag is set."""
    if isinstance(loop, ast.For):
        loop.flags = (*getattr(loop, "flags", ()), flag)  # type: ignore[attr-defined]
    else:
        loop.test = ast.BoolOp(ast.And(), [none_of((flag,)), loop.test])


def _jump(flags: dict[type, str]) -> Callable[[Any], list[Any]]:
    return lambda statement: [_assign(flags[type(statement)], ast.Constant(True), statement)]


def _returned(statement: Any) -> list[Any]:
    value = statement.value or ast.Constant(None)
    return [
        _assign(RETURNED, ast.Constant(True), statement),
        _assign(VALUE, value, statement),
    ]


class _Lowering:
    """The lowering of jumps of some kinds; `replace` gives the statements that set flags in place of one."""

    def __init__(
        self,
        kinds: tuple[type, ...],
        replace: Callable[[Any], list[Any]],
        flags: tuple[str, ...],
        into_loops: bool,
    ) -> None:
        self.kinds, self.replace, self.flags, self.into_loops = kinds, replace, flags, into_loops

    def block(self, statements: Sequence[Any]) -> list[Any]:
        """The statements without such jumps."""
        found: list[Any] = []
        for i, statement in enumerate(statements):
            if isinstance(statement, self.kinds):
                return [*found, *self.replace(statement)]
            if isinstance(statement, (ast.Return, ast.Raise)):
                return [*found, statement]
            if not _contains(statement, self.kinds, self.into_loops):
                found.append(statement)
                continue
            rest = statements[i + 1 :]
            if isinstance(statement, ast.If) and (_ends(statement.body) or _ends(statement.orelse)):
                if not _ends(statement.body):
                    statement.body = [*statement.body, *rest]
                elif not _ends(statement.orelse):
                    statement.orelse = [*statement.orelse, *rest]
                rest = []
            self.inside(statement)
            found.append(statement)
            if rest:
                found.append(_unless(self.flags, self.block(rest)))
            return found
        return found

    def inside(self, statement: Any) -> None:
        """Lowers the jumps inside a compound statement."""
        for field in ("body", "orelse", "finalbody"):
            part = getattr(statement, field, None)
            if part:
                setattr(statement, field, self.block(part))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self.block(handler.body)
        if isinstance(statement, ast.Try) and statement.orelse:
            statement.orelse = [_unless(self.flags, statement.orelse)]
        if isinstance(statement, _LOOPS):
            for flag in self.flags:
                _stop_at(statement, flag)


def _ends(statements: Sequence[Any]) -> bool:
    """Whether control never comes to the end of these."""
    for statement in statements:
        if isinstance(statement, _ENDS):
            return True
        if isinstance(statement, ast.If) and _ends(statement.body) and _ends(statement.orelse):
            return True
    return False


def _assign(name: str, value: ast.expr, like: Any = None) -> ast.Assign:
    node = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.copy_location(node, like) if like is not None else node


def _unless(flags: Sequence[str], statements: Sequence[Any]) -> ast.If:
    return ast.copy_location(ast.If(none_of(flags), list(statements), []), statements[0])
