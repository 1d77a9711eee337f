"""Stacks of tensors: what a loop leaves for its gradient, last in first out (white paper 4.4).

A handle is a `Stack`, made anew by each execution of the op that creates it, so it belongs to the step.
A push holds on to its value, uncopied, and hands it on; nobody overwrites what is, or was, on a stack.

The first generation hands its handle on by reference, the second as a resource."""

from __future__ import annotations

from typing import Any, NoReturn

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.tensors.node import Node

__all__: list[str] = []


class Stack:
    """The values of one stack in one step: at most `limit` (negative: any number); none once `closed`."""

    __slots__ = ("_values", "closed", "limit", "name")

    def __init__(self, name: str, limit: int = -1) -> None:
        self.name, self.limit = name, limit
        self.closed = False
        self._values: list[Any] = []

    def __repr__(self) -> str:
        return f"<Stack {self.name} with {len(self._values)} values>"

    def push(self, value: Any) -> Any:
        """Puts `value` on top; returns it. InvalidArgumentError if the stack is full or closed."""
        if 0 <= self.limit <= len(self._values):
            self._fail(f"overflowed its max_size ({self.limit})")
        self._values.append(value)
        return value

    def pop(self) -> Any:
        """Takes the top value off. InvalidArgumentError if there is none."""
        if not self._values:
            self._fail("is empty when calling Pop().")
        return self._values.pop()

    def close(self) -> None:
        """Drops all values; nothing can be pushed or popped any more."""
        self._values.clear()
        self.closed, self.limit = True, 0

    def _fail(self, problem: str) -> NoReturn:
        text = "has already been closed." if self.closed else problem
        raise InvalidArgumentError(None, None, f"Stack[{self.name}] {text}")


def _declare(generation: str, handle: str) -> None:
    no_gradient = OpDeclaration.no_gradient if generation else OpDeclaration.not_differentiable
    creation = op(
        "Stack" + generation,
        f"{'max_size: int32 ' if generation else ''}-> handle: {handle}",
        "elem_type: type ; stack_name: string = ''",
        capturable=True,
        stateful=True,
        container="stack",
        host=["max_size"] if generation else [],
    )
    creation.infer(lambda node: (2,))
    creation.kernel(CPU, GPU)(_creation)
    no_gradient(creation)

    stateful = generation == "V2"
    push = op(
        "StackPush" + generation,
        f"handle: {handle}, elem: T -> output: T",
        "swap_memory: bool = false",
        T=None,
        capturable=True,
        stateful=stateful,
        mutates=[0],
        keeps=[1],
        container="push",
        aliases=[1],
    )
    push.infer(lambda node: node.dims(1))
    push.kernel(CPU, GPU)(lambda node, env: Call(Stack.push, X0, X1))
    push.value()(lambda node: None)
    no_gradient(push)

    pop = op(
        "StackPop" + generation,
        f"handle: {handle} -> elem: elem_type",
        "elem_type: type",
        capturable=True,
        stateful=stateful,
        mutates=[0],
        container="pop",
        overlapping=True,  # others may hold the same tensor: not to be overwritten
    )
    pop.infer(lambda node: None)
    pop.kernel(CPU, GPU)(lambda node, env: Call(Stack.pop, X0))
    pop.value()(lambda node: None)  # but a plan may find out (`rewriting/simplification/shape_refinement.py`)
    no_gradient(pop)

    close = op(
        "StackClose" + generation,
        f"handle: {handle} ->",
        stateful=stateful,
        mutates=[0],
        container="close",
        capturable=True,
    )
    close.infer(lambda node: None)
    close.kernel(CPU, GPU)(lambda node, env: Call(Stack.close, X0))
    no_gradient(close)


def _creation(node: Node, env: Environment) -> Kernel:
    name = node.attributes["stack_name"] or node.name
    if not node.inputs:
        return lambda: Stack(name)
    limit = node.constant(0)
    if limit is not None:
        return Call(Stack, name, int(limit))
    return lambda size: Stack(name, int(size))


for _generation, _handle in (("", "Ref(string)"), ("V2", "resource")):
    _declare(_generation, _handle)
