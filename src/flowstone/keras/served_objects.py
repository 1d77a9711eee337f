"""A model of `tf.keras` as an object of a SavedModel: what `tf.saved_model.load_v2` makes of its folder.

The object can be called as the model can, `restored(inputs, training=False)`, and has `variables`,
`trainable_variables` and `regularization_losses`, a list of functions. What the model keeps of its calls is
as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.extensions import additions, calls
from flowstone.keras.published import own

__all__ = ["save"]

_OF_CALLS = ("_inbound_nodes", "_outbound_nodes", "_metrics")


def save(model: Any, folder: str) -> None:
    """Writes the SavedModel, with the signature of serving; values are those of Keras' session.

    Raises AssertionError or ValueError for a model that uses what functions do not take, such as a table.
    """
    names, specs = model.input_names, [tf.TensorSpec(x.shape, x.dtype.base_dtype) for x in model.inputs]

    def __call__(inputs: Any, training: bool = False) -> Any:
        with _apart(model), additions.collecting() as added:
            outputs = model(inputs, training=training)
        with tf.control_dependencies([update for _, update in added.updates] if training else []):
            return nest.map_structure(tf.identity, outputs)

    def serve(**inputs: Any) -> dict[str, Any]:
        given = [inputs[name] for name in names]
        outputs = __call__(given if len(given) > 1 else given[0])
        return dict(zip(model.output_names, nest.flatten(outputs)))

    called = tf.function(__call__, autograph=False)
    for training in (False, True):
        called.get_concrete_function(specs if len(specs) > 1 else specs[0], training=training)
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in zip(names, specs)}
    signature = tf.function(serve, autograph=False).get_concrete_function(**named)
    made: Any = tf.train.Checkpoint(
        variables=list(model.weights),
        trainable_variables=list(model.trainable_weights),
        regularization_losses=[_function_of(loss) for loss in model.losses if not _is_fed(loss)],
    )
    vars(made)["__call__"] = called
    with own("backend").get_session().as_default():
        tf.saved_model.save(made, folder, {"serving_default": signature})


def _is_fed(tensor: Any) -> bool:
    """Whether the tensor depends on a placeholder."""
    waiting, seen = [tensor.op], {tensor.op}
    while waiting:
        operation = waiting.pop()
        if operation.type.startswith("Placeholder"):
            return True
        before = {x.op for x in operation.inputs} - seen
        waiting += before
        seen |= before
    return False


def _function_of(loss: Any) -> Any:
    made = tf.function(lambda: _copied(loss), input_signature=[], autograph=False)
    made.get_concrete_function()
    return made


@contextmanager
def _apart(model: Any) -> Iterator[None]:
    """Within it, layers have what they computed of weights in the default graph; calls are not kept."""
    layers = list(dict.fromkeys(_parts(model)))
    kept = [dict(vars(layer)) for layer in layers]
    for layer in layers:
        for name, value in list(vars(layer).items()):
            if isinstance(value, tf.Tensor) and not _is_fed(value):
                vars(layer)[name] = _copied(value)
            elif name in _OF_CALLS:
                vars(layer)[name] = list(value)
    try:
        yield
    finally:
        for layer, attributes in zip(layers, kept):
            vars(layer).clear()
            vars(layer).update(attributes)


def _parts(layer: Any) -> Iterator[Any]:
    """A layer, the layers within and their cells."""
    for each in [layer, *calls.below(layer)]:
        yield each
        for cell in nest.flatten([vars(each).get("cell")]):
            if hasattr(cell, "call"):
                yield from (cell, *getattr(cell, "cells", ()))


def _copied(tensor: Any) -> Any:
    """The tensor computed once more in the default graph, from variables and constants."""
    operation = tensor.op
    if operation.type == "VarHandleOp":
        return tensor
    made = tf.get_default_graph().create_op(
        operation.type,
        [_copied(x) for x in operation.inputs],
        [x.dtype for x in operation.outputs],
        attrs=dict(operation.node_def.attr),
        name=operation.name.rpartition("/")[2],
    )
    found = made.outputs[tensor.value_index]
    found.set_shape(tensor.shape)
    return found
