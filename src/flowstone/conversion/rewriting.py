"""A function's syntax tree with calls of `operators` and `control_flow` in place of statements and operators.

    if x > 0:                 def ag__body_1(): nonlocal y; y = x
        y = x                 def ag__orelse_1(): nonlocal y; y = -x
    else:            ->       ag__.if_stmt(x > 0, ag__body_1, ag__orelse_1, ("y",), ("y",), ())
        y = -x

A branch or a loop's body becomes a function without arguments whose variables are the ones of the function
around it; the operators read and write them through its closure. ``f(x)`` becomes ``ag__.call(f)(x)``, ``a
and b`` ``ag__.and_(lambda: a, lambda: b)``. New nodes have the place of the old ones, so that tracebacks
name the user's lines.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from flowstone.conversion.jumps import lower_jumps
from flowstone.conversion.names import composite_targets, mark_live, writes
from flowstone.conversion.new_nodes import RUNTIME, arguments_of, new_function, none_of, runtime

__all__ = ["is_generator", "rewritten"]

_FRAME_FUNCTIONS = frozenset(
    {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__", "breakpoint"}
)
_EQUALITIES = {ast.Eq: "eq", ast.NotEq: "not_eq"}


def rewritten(definition: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
    """The converted definition; the given one stays as it is."""
    node = copy.deepcopy(definition)
    result = _Rewriter(node).visit_definition(node)
    return ast.fix_missing_locations(result)  # type: ignore[no-any-return]


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(runtime(name), list(arguments), [])


def _names(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())


def _lambda(body: ast.expr, *arguments: str) -> ast.Lambda:
    return ast.Lambda(arguments_of(*arguments), body)


def _placed(new: Any, old: Any) -> Any:
    """The node with the place of the one that it replaces, for itself and what is new inside."""
    ast.copy_location(new, old)
    return ast.fix_missing_locations(new)


class _Rewriter(ast.NodeTransformer):
    """The rewriting of one function, nested ones by a rewriter of their own."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.count = 0
        self.assigned: set[str] = set()  # by parts that became functions
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def visit_definition(self, node: Any) -> Any:
        """The definition with its body rewritten; its defaults and decorators are its surroundings'."""
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return node
        for each in ast.walk(node):
            if isinstance(each, ast.Global):
                self.globals.update(each.names)
            elif isinstance(each, ast.Nonlocal):
                self.nonlocals.update(each.names)
        lower_jumps(node)
        mark_live(node)
        documentation = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body = [*documentation, *self._block(node.body[len(documentation) :])]
        local = sorted(self.assigned - self.globals - self.nonlocals)
        if local:  # makes them variables of this function
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in local]
            dead = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
            node.body.insert(len(documentation), _placed(dead, node))
        return node

    def _block(self, statements: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for statement in statements:
            result = self.visit(statement)
            found += result if isinstance(result, list) else [result]
        return found

    # ---- nested definitions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args = self.visit(node.args)
        if is_generator(node):
            return node
        return _Rewriter(node).visit_definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self.visit(node.args)
        return _Rewriter(node).visit_definition(node)

    # ---- statements

    def _part(
        self, name: str, statements: Sequence[Any], modified: set[str], place: Any, *arguments: str
    ) -> Any:
        """A function of statements, whose variables are those of the function around it."""
        body = self._block(statements)
        self.assigned |= modified
        everywhere = sorted(modified & self.globals)
        around = sorted(modified - self.globals)
        declared: list[Any] = [ast.Global(everywhere)] if everywhere else []
        declared += [ast.Nonlocal(around)] if around else []
        return _placed(new_function(name, arguments, [*declared, *(body or [ast.Pass()])]), place)

    def _composites(self, parts: Sequence[Any], modified: set[str]) -> ast.expr:
        """For each attribute or item that is assigned its text, what reads it and what writes it."""
        found: list[ast.expr] = []
        for text, target in composite_targets(parts, modified).items():
            read = copy.deepcopy(target)
            read.ctx = ast.Load()  # type: ignore[attr-defined]
            value, new = copy.deepcopy(target.value), ast.Name("ag__new", ast.Load())  # type: ignore[attr-defined]
            if isinstance(target, ast.Attribute):
                write = _call("set_attribute", value, ast.Constant(target.attr), new)
            else:
                write = _call("set_item", value, copy.deepcopy(target.slice), new)  # type: ignore[attr-defined]
            parts_of = [ast.Constant(text), _lambda(read), _lambda(write, "ag__new")]
            found.append(ast.Tuple(parts_of, ast.Load()))
        return ast.Tuple(found, ast.Load())

    def visit_If(self, node: Any) -> Any:
        self.count += 1
        modified = writes([*node.body, *node.orelse])
        composites = self._composites([*node.body, *node.orelse], modified)
        body_name, orelse_name = f"ag__body_{self.count}", f"ag__orelse_{self.count}"
        test = self.visit(node.test)
        body = self._part(body_name, node.body, modified, node.body[0])
        orelse = self._part(orelse_name, node.orelse, modified, node.orelse[0] if node.orelse else node)
        functions = [ast.Name(name, ast.Load()) for name in (body_name, orelse_name)]
        live = modified & node.live_out
        call = _call("if_stmt", test, *functions, _names([*modified]), _names([*live]), composites)
        return [body, orelse, _placed(ast.Expr(call), node)]

    def visit_While(self, node: Any) -> Any:
        self.count += 1
        options, statements = self._options(node.body)
        modified = writes([*statements, node.test])
        composites = self._composites(statements, modified)
        test_name, body_name = f"ag__test_{self.count}", f"ag__body_{self.count}"
        test = self._part(test_name, [_placed(ast.Return(node.test), node.test)], set(), node)
        body = self._part(body_name, statements, modified, statements[0] if statements else node)
        functions = [ast.Name(name, ast.Load()) for name in (test_name, body_name)]
        live = modified & (node.live_out | node.live_head)
        call = _call("while_stmt", *functions, _names([*modified]), _names([*live]), composites, options)
        return [test, body, _placed(ast.Expr(call), node)]

    def visit_For(self, node: Any) -> Any:
        self.count += 1
        options, statements = self._options(node.body)
        modified = writes([node.target, *statements])
        composites = self._composites(statements, modified)
        body_name = f"ag__body_{self.count}"
        take = _placed(ast.Assign([node.target], ast.Name("ag__item", ast.Load())), node)
        iterated = self.visit(node.iter)
        body = self._part(body_name, [take, *statements], modified, node, "ag__item")
        flags = getattr(node, "flags", ())
        goes_on = _lambda(self.visit(none_of(flags))) if flags else ast.Constant(None)
        live = modified & (node.live_out | node.live_head)
        call = _call(
            "for_stmt", iterated, goes_on, ast.Name(body_name, ast.Load()), _names([*modified]),
            _names([*live]), composites, options,
        )  # fmt: skip
        return [body, _placed(ast.Expr(call), node)]

    def _options(self, statements: Sequence[Any]) -> tuple[ast.expr, Sequence[Any]]:
        """What a loop's first statement, ``set_loop_options(...)``, asks for, and the others."""
        for i, first in enumerate(statements[:2]):  # the first may reset the flag of `continue`
            call = first.value if isinstance(first, ast.Expr) else None
            name = call.func if isinstance(call, ast.Call) else None
            if (
                isinstance(name, ast.Attribute)
                and name.attr == "set_loop_options"
                and isinstance(call, ast.Call)
            ):
                rest = [*statements[:i], *statements[i + 1 :]]
                named = [ast.keyword(each.arg, self.visit(each.value)) for each in call.keywords]
                options = ast.Call(runtime("loop_options"), [self.visit(each) for each in call.args], named)
                return _lambda(options), rest or [_placed(ast.Pass(), first)]
        return ast.Constant(None), statements

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = self.visit(node.msg) if node.msg is not None else ast.Constant(None)
        return _placed(ast.Expr(_call("assert_", self.visit(node.test), _lambda(message))), node)

    # ---- expressions

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args and not node.keywords:
            first = [*self.function.args.posonlyargs, *self.function.args.args][:1]
            if first:  # a frame further inside has no first argument
                node.args = [ast.Name("__class__", ast.Load()), ast.Name(first[0].arg, ast.Load())]
            return _placed(node, node)
        function, node.func = node.func, ast.Name(RUNTIME, ast.Load())
        node = self.generic_visit(node)  # type: ignore[assignment]
        visited = self.visit(function)
        is_own = isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == RUNTIME
        node.func = (
            visited if name in _FRAME_FUNCTIONS or is_own else _placed(_call("call", visited), function)
        )
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if _binds(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _placed(_call(name, *[_lambda(value) for value in node.values]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        return _placed(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if _binds([node.body, node.orelse]):
            return node
        return _placed(_call("if_exp", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        operands = [node.left, *node.comparators]
        pairs = list(zip(operands, node.ops, operands[1:]))
        if len(pairs) == 1:
            return _placed(_comparison(*pairs[0]), node)
        if not all(isinstance(each, (ast.Name, ast.Constant)) for each in operands[1:-1]):
            return node  # what stands between would be computed twice
        tests = [_lambda(_comparison(x, op, copy.deepcopy(y))) for x, op, y in pairs]
        return _placed(_call("and_", *tests), node)


def _comparison(x: ast.expr, op: ast.cmpop, y: ast.expr) -> ast.expr:
    name = _EQUALITIES.get(type(op))
    return ast.Compare(x, [op], [y]) if name is None else _call(name, x, y)


def _binds(nodes: Any) -> bool:
    """Whether an expression binds a name, or waits, which it could not from inside a lambda."""
    kinds = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
    listed = nodes if isinstance(nodes, list) else [nodes]
    return any(isinstance(each, kinds) for node in listed for each in ast.walk(node))


def is_generator(function: Any) -> bool:
    """Whether a function yields or waits; such a one stays as it is."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return False
