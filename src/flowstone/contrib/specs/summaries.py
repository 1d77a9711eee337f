"""What a network consists of: its operations, shapes and numbers of parameters, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import flowstone as tf
from flowstone.contrib.specs import specs

__all__ = [
    "SHORT_NAMES",
    "tf_left_split",
    "tf_num_params",
    "tf_parameter_iter",
    "tf_parameter_summary",
    "tf_print",
    "tf_spec_print",
    "tf_spec_structure",
    "tf_spec_summary",
    "tf_structure",
]

# What `tf_structure` calls the operations of these types; others go by their types in lower case.
SHORT_NAMES = {
    "BiasAdd": "biasadd",
    "Const": "_",
    "Conv2D": "conv",
    "MatMul": "dot",
    "Placeholder": "_",
    "Sigmoid": "sig",
    "Variable": "var",
}
Row = tuple[str, int, list[int | None]]
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _operation(x: Any) -> Any:
    return x.op if hasattr(x, "op") else x


def _shape(op: Any) -> list[int | None]:
    variable = op.type == "VarHandleOp"
    shape = tf.TensorShape(op.get_attr("shape")) if variable else op.outputs[0].get_shape()
    dims: list[int | None] = shape.as_list()
    return dims


def tf_structure(x: Any, include_shapes: bool = False, finished: set[Any] | None = None) -> str:
    """The operations that a tensor depends on, inputs first, by short names; ``<>`` is a repeated one.

    Args:
        x: a tensor or an operation.
        include_shapes: whether the shape of each operation's result comes before its name.
        finished: the operations that are taken as repeated, to which those of the text are added.
    """
    finished = set() if finished is None else finished
    op = _operation(x)
    if op in finished:
        return " <>"
    finished.add(op)
    text = "".join(tf_structure(each, include_shapes, finished) for each in op.inputs)
    if include_shapes:
        text += f" {_shape(op)}"
    return text if op.type == "Identity" else f"{text} {SHORT_NAMES.get(op.type, op.type.lower())}"


def tf_print(
    x: Any, depth: int = 0, finished: set[Any] | None = None, printer: Callable[[str], Any] = print
) -> None:
    """Prints a line for each operation that a tensor depends on, inputs below it and further to the right.

    Args:
        x: a tensor or an operation.
        depth: how far the first line is from the margin, in steps of two blanks.
        finished: operations whose inputs are not printed again.
        printer: takes each line.
    """
    finished = set() if finished is None else finished
    op = _operation(x)
    if op.type == "Identity" and op.inputs:
        tf_print(op.inputs[0], depth, finished, printer)
        return
    name = f"<{op.name}>" if op in finished else op.name
    printer(f"{'  ' * depth}{name} {op.type} {_shape(op)}")
    if op in finished:
        return
    finished.add(op)
    for each in op.inputs:
        tf_print(each, depth + 1, finished, printer)


def tf_left_split(op: Any) -> tuple[Any, list[Any]]:
    """An operation's first tensor and its other inputs; None in place of the first if it has no inputs."""
    inputs = list(op.inputs)
    if op.type == "Concat":
        inputs = inputs[1:]
    return (inputs[0], inputs[1:]) if inputs else (None, [])


def _variables(x: Any) -> set[Any]:
    """The operations of the variables that a tensor depends on."""
    found, waiting = set[Any](), [_operation(x)]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting.extend(_operation(each) for each in op.inputs)
    return {op for op in found if op.type in _VARIABLES}


def _size(variables: set[Any]) -> int:
    return sum(tf.TensorShape(_shape(op)).num_elements() or 0 for op in variables)


def tf_num_params(x: Any) -> int:
    """The number of elements of the variables that a tensor depends on, each variable counted once."""
    return _size(_variables(x))


def tf_parameter_iter(x: Any) -> Iterator[Row]:
    """The chain of first inputs from a tensor back: for each operation its name, parameters and shape.

    Its parameters are the elements of the variables that its other inputs depend on.
    """
    while x is not None:
        op = _operation(x)
        left, right = tf_left_split(op)
        own = [op] if left is None else right
        yield op.name, _size(set[Any]().union(*map(_variables, own))), _shape(op)
        x = left


def _combined(
    rows: Iterator[Row],
) -> Iterator[Row]:
    """Neighbouring rows of one outermost scope made one, with the shape of the first."""
    last: Row | None = None
    for name, params, shape in rows:
        scope = name.partition("/")[0]
        if last is not None and last[0] == scope:
            last = (scope, last[1] + params, last[2])
            continue
        if last is not None:
            yield last
        last = (scope, params, shape)
    if last is not None:
        yield last


def tf_parameter_summary(x: Any, printer: Callable[[str], Any] = print, combine: bool = True) -> None:
    """Prints the rows of `tf_parameter_iter` from the input to `x`: parameters, name and shape.

    Args:
        x: a tensor.
        printer: takes each line.
        combine: whether the operations of one outermost scope make one row.
    """
    rows = tf_parameter_iter(x)
    for name, params, shape in reversed(list(_combined(rows) if combine else rows)):
        printer(f"{params:10d} {name:<20s} {shape}")


def _net(spec: str, inputs: Any, input_shape: Any, input_type: Any) -> Any:
    if inputs is None:
        if input_shape is None:
            raise ValueError("a summary of a spec needs the network's inputs or their shape")
        inputs = tf.placeholder(input_type, input_shape)
    return specs.create_net(spec, inputs)


def tf_spec_structure(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = tf.float32
) -> str:
    """`tf_structure` of a spec's network; ValueError without inputs and their shape."""
    return tf_structure(_net(spec, inputs, input_shape, input_type)).strip()


def tf_spec_summary(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = tf.float32
) -> None:
    """Prints the `tf_parameter_summary` of a spec's network; ValueError without inputs and their shape."""
    tf_parameter_summary(_net(spec, inputs, input_shape, input_type))


def tf_spec_print(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = tf.float32
) -> None:
    """Prints a spec's network with `tf_print`; ValueError without inputs and their shape."""
    tf_print(_net(spec, inputs, input_shape, input_type))
