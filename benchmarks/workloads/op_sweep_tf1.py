"""Times runs of ops on flowstone or TensorFlow, with inputs that are variables: see `scaled_cases.py`.

Answers the questions of `sweep_workers.py`. BYTES is the size; DTYPE the element type, if only one is wanted.
With GRADIENTS, times the gradients of the first result by all inputs that have one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from own_cases import Held
from scaled_cases import subjects
from tf1 import tf

from sweep_workers import serve

SUBJECTS = {subject.name: subject for subject in subjects(int(os.environ["BYTES"]), os.environ["DTYPE"])}
IS_OURS = os.environ["IMPLEMENTATION"] == "flowstone"


def add(op: str, inputs: list[Any], given_attributes: dict[str, Any]) -> Any:
    """The node of the op."""
    attributes = {
        name: tf.as_dtype(value) if isinstance(value, str) and value in dir(tf.dtypes) else value
        for name, value in given_attributes.items()
    }
    if IS_OURS:
        from flowstone.framework.declarations.operation import registry

        result = registry[op](*inputs, **attributes)
    else:
        from tensorflow.python.framework import op_def_library, op_def_registry

        definition = op_def_registry.get(op)
        given = dict(zip([argument.name for argument in definition.input_arg], inputs))
        defaults = {a.name: default_of(a) for a in definition.attr if a.HasField("default_value")}
        free = {name: value for name, value in defaults.items() if value is not None} | attributes
        for argument in definition.input_arg:
            free.pop(argument.type_attr, None)
        result = op_def_library.apply_op(op, **given, **free)
    while isinstance(result, (list, tuple)):
        result = result[0]
    return getattr(result, "op", result)


def default_of(attribute: Any) -> Any:
    """The default of an attribute of TensorFlow's definition; None if its type is a type."""
    kind, value = attribute.type, attribute.default_value
    if kind == "list(int)":
        return list(value.list.i)
    fields = {"int": "i", "float": "f", "bool": "b", "string": "s"}
    return getattr(value, fields[kind]) if kind in fields else None


def variables(inputs: list[Any], made: list[Any]) -> list[Any]:
    """Variables with these values, or constants where they are small; their fed values are put in `made`."""

    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(each) for each in value]
        if not isinstance(value, Held):
            if value.size <= 16:
                return tf.constant(value)
            value = Held(value)
        dtype = tf.as_dtype(value.dtype or value.value.dtype)
        holder = tf.placeholder(dtype, value.value.shape)
        variable = tf.Variable(holder, trainable=False, use_resource=value.role == "resource")
        made.append((variable.initializer, holder, value.value))
        if value.role == "tensor":
            return variable
        return variable._ref() if value.role == "variable" else variable.handle

    return [one(value) for value in inputs]


def gradients(result: Any, inputs: list[Any], made: list[Any]) -> list[Any]:
    """What computes the gradients of a result by the inputs, for gradients of the result that are not known
    to be ones: not their group, of which TensorFlow's optimisation leaves nothing."""
    flat = [x for each in inputs for x in (each if isinstance(each, list) else [each])]
    by = [x for x in flat if tf.as_dtype(x.dtype).base_dtype.is_floating]
    dy = np.full(result.shape.as_list(), 0.5, result.dtype.as_numpy_dtype)
    found = [x for x in tf.gradients(result, by, variables([dy], made)) if x is not None]
    if not found:
        raise ValueError("no gradient flows")
    return [getattr(x, "values", x).op for x in found]


def prepared(name: str, way: int) -> Callable[[], object]:
    """A run of the op."""
    subject = SUBJECTS[name]
    inputs, attributes = subject.ways[way]()
    with tf.Graph().as_default():
        made: list[Any] = []
        given = variables(inputs, made)
        if subject.op.startswith(
            "Inplace"
        ):  # as their functions give them: else TensorFlow changes the variable
            given[0] = add("DeepCopy", given[:1], {}).outputs[0]
        node = add(subject.op, given, attributes)
        if os.environ["GRADIENTS"]:
            node = gradients(node.outputs[0], given, made)
        session = tf.Session()
        for initializer, holder, value in made:
            session.run(initializer, {holder: value})
        run: Callable[[], object] = session.make_callable(node)
        return run


serve(prepared)
