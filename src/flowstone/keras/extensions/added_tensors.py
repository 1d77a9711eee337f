"""Losses and metrics of tensors that a model of layers is told of, as layers of that model.

    model = tf.keras.Model(x, y);  model.add_loss(tf.reduce_mean(h))

The tensor, and the operations that it takes from the model's tensors, become layers of the model: an
`AddLoss` or an `AddMetric` at the end. So they are in its summary and its configuration, are there again in
what is made of that, and are computed anew where the model is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.keras.extensions.operation_layers import with_history
from flowstone.keras.published import own

__all__ = ["adopt", "adopting", "as_loss", "as_metric", "layer_classes"]


def layer_classes(base: Any) -> dict[str, Any]:
    """The classes `AddLoss` and `AddMetric`, over the package's class of layers."""

    class AddLoss(base.Layer):  # type: ignore[misc]
        """Adds its inputs, which are its outputs, to the losses."""

        def __init__(self, unconditional: bool, **options: Any) -> None:
            super().__init__(**options)
            self.unconditional = unconditional

        def call(self, inputs: Any) -> Any:
            """The inputs."""
            self.add_loss(inputs, inputs=None if self.unconditional else [inputs])
            return inputs

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "unconditional": self.unconditional}

    class AddMetric(base.Layer):  # type: ignore[misc]
        """Adds its inputs, which are its outputs, as a metric."""

        def __init__(
            self, aggregation: str | None = None, metric_name: str | None = None, **options: Any
        ) -> None:
            super().__init__(**options)
            self.aggregation, self.metric_name = aggregation, metric_name

        def call(self, inputs: Any) -> Any:
            """The inputs."""
            self.add_metric(inputs, self.aggregation, self.metric_name)
            return inputs

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            entries = {"aggregation": self.aggregation, "metric_name": self.metric_name}
            return {**super().get_config(), **entries}

    return {"AddLoss": AddLoss, "AddMetric": AddMetric}


def as_loss(model: Any, tensor: Any) -> bool:
    """Adds a loss as a layer of `model`; False if it is none of tensors between its layers."""
    make = own("layers").AddLoss
    return _add(model, tensor, lambda: make(unconditional=False))


def as_metric(model: Any, tensor: Any, aggregation: str | None, name: str | None) -> bool:
    """Adds a metric as a layer of `model`; False if it is none of tensors between its layers."""
    make = own("layers").AddMetric
    return _add(model, tensor, lambda: make(aggregation, name))


def _add(model: Any, tensor: Any, make: Callable[[], Any]) -> bool:
    is_between = getattr(model, "_is_graph_network", False) and isinstance(tensor, tf.Tensor)
    if not is_between or isinstance(model, own("engine.sequential").Sequential):
        return False
    if strategy_of_several() is not None:  # whose replicas compute what was added themselves
        return False
    origin = getattr(with_history(tensor), "_keras_history", None)
    if origin is None or _new_nodes(model, [origin[0]._inbound_nodes[origin[1]]]) is None:
        return False
    layer = make()
    layer(tensor)
    _insert(model, layer)
    return True


# ---- layers of a model that its outputs do not depend on


def adopting(published: Callable[..., Any], names: Callable[..., Iterable[str]]) -> Callable[..., Any]:
    """A function that makes a model by calling layers; `names(…)` gives those of its layers, in order."""

    def made(*arguments: Any, **keywords: Any) -> Any:
        model = published(*arguments, **keywords)
        if getattr(model, "_is_graph_network", False):
            adopt(model, list(names(*arguments, **keywords)))
        return model

    made.__name__, made.__doc__ = published.__name__, published.__doc__
    return made


def adopt(model: Any, names: Sequence[str]) -> None:
    """Makes the losses and metrics that were computed from the model's layers part of the model."""
    layers = own("layers")
    kinds, held = (layers.AddLoss, layers.AddMetric), {id(layer) for layer in model.layers}
    found: list[Any] = []
    stack = list(model.layers)
    while stack:
        for node in stack.pop()._outbound_nodes:
            layer = node.outbound_layer
            if id(layer) not in held:
                held.add(id(layer))
                stack.append(layer)
                found += [layer] if isinstance(layer, kinds) else []
    for layer in sorted(found, key=lambda each: names.index(each.name) if each.name in names else len(names)):
        _insert(model, layer)


def _insert(model: Any, layer: Any) -> None:
    """Makes `layer`, and what lies between it and the model's layers, part of the model."""
    nodes = _new_nodes(model, layer._inbound_nodes)
    depths = {node: depth for depth, held in model._nodes_by_depth.items() for node in held}
    outputs = layer._inbound_nodes[-1].output_tensors
    ordered = own("engine.network")._map_graph_network(model.inputs, outputs)[2]
    ranks = {each: rank for rank, each in enumerate(ordered)}
    for node in sorted(nodes or (), key=lambda each: ranks[each.outbound_layer]):
        depth = min(0, *(depths[parent] for parent in _parents(node))) - 1
        depths[node] = depth
        model._network_nodes.add(_key(model, node))
        model._nodes_by_depth.setdefault(depth, []).append(node)
        if not any(node.outbound_layer is each for each in model._layers):
            model._layers.append(node.outbound_layer)
            model._layers_by_depth.setdefault(depth, []).append(node.outbound_layer)


def _new_nodes(model: Any, ends: Sequence[Any]) -> list[Any] | None:
    """The nodes that lead from the model's to `ends`, in order; None if they have other beginnings, too."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack = [(node, False) for node in reversed(ends)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen and _key(model, node) not in model._network_nodes:
            seen.add(node)
            parents = _parents(node)
            if not parents:
                return None
            stack += [(node, True), *((parent, False) for parent in reversed(parents))]
    return order


def _parents(node: Any) -> list[Any]:
    return [layer._inbound_nodes[index] for layer, index in zip(node.inbound_layers, node.node_indices)]


def _key(model: Any, node: Any) -> Any:
    layer = node.outbound_layer
    return model._node_key(layer, layer._inbound_nodes.index(node))
