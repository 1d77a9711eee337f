"""Operations, tensors and variables of one graph in another, under the same names or below a scope.

A copy is found again by its name, so that what is copied twice is there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf

__all__ = ["copy_op_to_graph", "copy_variable_to_graph", "get_copied_op"]

_KEPT_KEYS = (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES)


def copy_variable_to_graph(org_instance: Any, to_graph: Any, scope: str = "") -> Any:
    """A variable with a variable's initial value and collections, in another graph.

    Args:
        org_instance: the variable; its initial value is computed now, so it must not need what is fed.
        to_graph: the graph.
        scope: the scope of the copy's name, and of the collections that are not TensorFlow's own.

    Raises TypeError for what is not a variable.
    """
    if not isinstance(org_instance, tf.Variable):
        raise TypeError(f"{org_instance} is not a Variable")
    name = f"{scope}/{org_instance.op.name}" if scope else org_instance.op.name
    collections = []
    for key in org_instance.graph.get_all_collection_keys():
        if any(each is org_instance for each in org_instance.graph.get_collection(key)):
            collections.append(key if key in _KEPT_KEYS or not scope else f"{scope}/{key}")
    with org_instance.graph.as_default(), tf.Session() as session:
        initial = session.run(org_instance.initializer.inputs[1])
    trainable = tf.GraphKeys.TRAINABLE_VARIABLES in collections
    with to_graph.as_default():
        dtype = org_instance.dtype.base_dtype
        return tf.Variable(
            initial, trainable, name=name, collections=collections, validate_shape=False, dtype=dtype
        )


def _is_there(graph: Any, name: str) -> bool:
    try:
        graph.get_operation_by_name(name)
    except KeyError:
        return False
    return True


def _needed(op: Any, to_graph: Any, prefix: str) -> tuple[list[Any], list[Any]]:
    """The operations to copy for `op`, and those of their inputs that are there already."""
    missing: dict[Any, None] = {}
    present: dict[Any, None] = {}
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if each in missing or each in present:
            continue
        if _is_there(to_graph, prefix + each.name):
            present[each] = None
            continue
        missing[each] = None
        waiting.extend([tensor.op for tensor in each.inputs] + list(each.control_inputs))
    return list(missing), list(present)


def copy_op_to_graph(org_instance: Any, to_graph: Any, variables: Sequence[Any], scope: str = "") -> Any:
    """An operation or tensor in another graph, with all that it depends on.

    Args:
        org_instance: an operation or a tensor; of a variable its copy is looked up.
        to_graph: the graph.
        variables: the copies of variables that are in that graph.
        scope: the scope of the copies' names.

    Returns the operation or tensor of the graph, which is there already if it was copied before. Raises
    TypeError for a variable that has no copy and for objects of another kind.
    """
    if isinstance(org_instance, tf.Variable):
        name = f"{scope}/{org_instance.op.name}" if scope else org_instance.op.name
        for variable in variables:
            if variable.op.name == name:
                return to_graph.as_graph_element(f"{name}:0")
        raise TypeError(f"{org_instance} has no copy among the variables; copy_variable_to_graph makes one")
    if not isinstance(org_instance, (tf.Operation, tf.Tensor)):
        raise TypeError(f"an operation or a tensor can be copied, not {org_instance!r}")
    op = org_instance if isinstance(org_instance, tf.Operation) else org_instance.op
    prefix = f"{scope}/" if scope else ""
    missing, present = _needed(op, to_graph, prefix)
    if missing:
        _import(op.graph, missing, present, to_graph, prefix)
    return get_copied_op(org_instance, to_graph, scope)


def _import(graph: Any, missing: Sequence[Any], present: Sequence[Any], to_graph: Any, prefix: str) -> None:
    message = tf.GraphDef()
    message.CopyFrom(graph.as_graph_def())
    names = {op.name for op in missing}
    kept = [node for node in message.node if node.name in names]
    del message.node[:]
    for node in kept:
        if "_class" in node.attr:
            colocated = [name.decode().removeprefix("loc:@") for name in node.attr["_class"].list.s]
            if not names.issuperset(colocated):
                del node.attr["_class"]
        message.node.add().CopyFrom(node)
    inputs = {f"^{op.name}": to_graph.get_operation_by_name(prefix + op.name) for op in present}
    for op in present:
        for tensor in op.outputs:
            inputs[tensor.name] = to_graph.get_tensor_by_name(prefix + tensor.name)
    used = {name for node in message.node for name in node.input}
    used |= {f"{name}:0" for name in used if ":" not in name}
    with to_graph.as_default():
        tf.import_graph_def(message, {name: inputs[name] for name in inputs if name in used}, name=prefix)


def get_copied_op(org_instance: Any, graph: Any, scope: str = "") -> Any:
    """The copy of an operation, tensor or variable in a graph, below a scope; KeyError if there is none."""
    name = org_instance.name
    return graph.as_graph_element(
        f"{scope}/{name}" if scope else name, allow_tensor=True, allow_operation=True
    )
