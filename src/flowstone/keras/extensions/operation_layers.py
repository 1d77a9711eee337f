"""Operations between the layers of a model, as layers.

    x = tf.keras.Input([3]);  y = Dense(2)(x * 2.0)

Where a layer is called with a tensor that depends on the output of another one by operations, or a model is
made of such a tensor, each of these operations becomes a `TensorFlowOpLayer`, so that the model has a layer
for whatever it computes. What does not depend on a layer's output is a constant of the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from google.protobuf import json_format

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.published import own

__all__ = ["extend", "with_history"]

_PREFIX = "tf_op_layer_"


def extend(module: ModuleType) -> None:
    """Gives `keras.engine.base_layer` the class `TensorFlowOpLayer`."""
    vars(module)["TensorFlowOpLayer"] = _class_over(vars(module)["Layer"])


def _class_over(layer: Any) -> Any:
    class TensorFlowOpLayer(layer):  # type: ignore[misc]
        """One operation: of its inputs, those that layers give are the layer's, the others `constants`."""

        def __init__(
            self, node_def: Any, name: str, constants: Any = None, trainable: bool = True, dtype: Any = None
        ) -> None:
            super().__init__(name=f"{_PREFIX}{name}", trainable=trainable, dtype=dtype)
            if isinstance(node_def, Mapping):
                node_def = json_format.ParseDict(node_def, tf.NodeDef())
            self.node_def = node_def
            self.constants: dict[int, Any] = {int(i): value for i, value in (constants or {}).items()}
            self.built = True

        @property
        def input_shape(self) -> list[Any]:
            """The shapes of the inputs, a list."""
            found = self.get_input_shape_at(0)
            return found if isinstance(found, list) else [found]

        @property
        def output_shape(self) -> list[Any]:
            """The shapes of the outputs, a list."""
            found = self.get_output_shape_at(0)
            return found if isinstance(found, list) else [found]

        def call(self, inputs: Any) -> Any:
            """The operation's outputs."""
            values = nest.flatten(inputs)
            for index in sorted(self.constants):
                value = self.constants[index]
                values.insert(index, tf.convert_to_tensor(value))
            graph = tf.get_default_graph()
            attributes = {k: v for k, v in self.node_def.attr.items() if not k.startswith("_")}
            name = self.node_def.name.rpartition("/")[2]
            made = graph.create_op(self.node_def.op, values, name=name, attrs=attributes)
            return made.outputs[0] if len(made.outputs) == 1 else list(made.outputs)

        def get_config(self) -> dict[str, Any]:
            """What it is made of: the node as a dict, and the values of its constants."""
            config = super().get_config()
            return {
                **config,
                "name": self.name.removeprefix(_PREFIX),
                "dtype": None if self._dtype_is_open else config["dtype"],
                "node_def": json_format.MessageToDict(self.node_def),
                "constants": {index: _value(each) for index, each in self.constants.items()},
            }

    return TensorFlowOpLayer


def with_history(tensors: Any) -> Any:
    """The tensors, in their nested form, each with the layer that made it if it depends on layers."""
    for tensor in nest.flatten(tensors):
        if isinstance(tensor, tf.Tensor) and not hasattr(tensor, "_keras_history"):
            _give_history(tensor)
    return tensors


def _give_history(tensor: Any) -> None:
    """Makes layers of the operations between `tensor` and the nearest outputs of layers."""
    order: list[Any] = []
    depends: dict[Any, bool] = {}
    stack = [(tensor.op, False)]
    while stack:
        op, is_done = stack.pop()
        if is_done:
            depends[op] = any(hasattr(x, "_keras_history") or depends.get(x.op, False) for x in op.inputs)
            if depends[op]:
                order.append(op)
            continue
        if op in depends:
            continue
        depends[op] = False
        stack.append((op, True))
        stack += [(x.op, False) for x in op.inputs if not hasattr(x, "_keras_history")]
    for op in order:
        if not hasattr(op.outputs[0], "_keras_history"):
            _as_layer(op)


def _as_layer(op: Any) -> None:
    """Gives the outputs of `op` a layer of their own, without computing them again."""
    inputs = [x for x in op.inputs if hasattr(x, "_keras_history")]
    constants = {i: _constant(x) for i, x in enumerate(op.inputs) if not hasattr(x, "_keras_history")}
    layer = own("engine.base_layer").TensorFlowOpLayer(op.node_def, op.name, constants)
    outputs = list(op.outputs)
    layer._add_inbound_node(
        input_tensors=inputs,
        output_tensors=outputs,
        input_masks=[None for _ in inputs],
        output_masks=[None for _ in outputs],
        input_shapes=[_shape(x) for x in inputs],
        output_shapes=[_shape(y) for y in outputs],
        arguments={},
    )


def _constant(tensor: Any) -> Any:
    """The value of a constant, which a configuration can have; other tensors as they are.

    TensorFlow 1.15 asks Keras' session for it, so that variables have their values, and new nodes their
    numbers, from here on.
    """
    tf.no_op(name="group_deps")
    own("backend").get_session()
    value = tf.get_static_value(tensor)
    return tensor if value is None else value


def _value(constant: Any) -> Any:
    return own("backend").get_value(constant) if isinstance(constant, tf.Tensor) else constant


def _shape(tensor: Any) -> Any:
    return None if tensor.shape.ndims is None else tuple(tensor.shape.as_list())
