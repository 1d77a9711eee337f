"""Optionals: an element, or that there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, StepCall
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import ELEMENTS
from flowstone.ops.datasets.iterators import IteratorState, check_element

__all__: list[str] = []


class Optional:
    """An `element`, or None."""

    def __init__(self, element: tuple[Any, ...] | None) -> None:
        self.element = element


def _scalar(node: Node) -> Dims:
    return ()


def _declared(declaration: OpDeclaration) -> OpDeclaration:
    declaration.infer(_scalar)
    declaration.not_differentiable()
    return declaration


optional_from_value_op = _declared(
    op(
        "OptionalFromValue", "components: *Toutput_types -> optional: variant",
        "Toutput_types: list(type) >= 1", keeps=[0], capturable=False,
    )
)  # fmt: skip
optional_none_op = _declared(op("OptionalNone", "-> optional: variant", capturable=False))
optional_has_value_op = _declared(
    op("OptionalHasValue", "optional: variant -> has_value: bool", capturable=False)
)
optional_get_value_op = op(
    "OptionalGetValue", "optional: variant -> components: *output_types", ELEMENTS, overlapping=True,
    capturable=False,
)  # fmt: skip
optional_get_value_op.not_differentiable()
iterator_get_next_as_optional_op = _declared(
    op(
        "IteratorGetNextAsOptional", "iterator: resource -> optional: variant", ELEMENTS, stateful=True,
        mutates=[0], capturable=False,
    )
)  # fmt: skip


@optional_from_value_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Optional]:
    return lambda *components: Optional(components)


@optional_none_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[], Optional]:
    return lambda: Optional(None)


@optional_has_value_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Optional], torch.Tensor]:
    return lambda optional: torch.tensor(optional.element is not None)


@optional_get_value_op.infer
def _(node: Node) -> Shapes:
    return list(node.attributes["output_shapes"])


@optional_get_value_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Optional], Any]:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def get(optional: Optional) -> Any:
        if optional.element is None:
            raise invalid("The given optional does not have a value.")
        check_element(optional.element, types, shapes)
        return optional.element

    return get


@iterator_get_next_as_optional_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    def get(step: Any, iterator: IteratorState) -> Optional:
        try:
            return Optional(iterator.next(step))
        except errors.OutOfRangeError:
            return Optional(None)

    return StepCall(get)
