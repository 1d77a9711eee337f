"""Layers whose activations are not kept for the backward pass: reversible ones, and functions computed anew.

A reversible residual layer (Gomez et al., 2017) is

    y1 = x1 + f(x2)
    y2 = x2 + g(y1)

so that its inputs can be computed from its outputs: x2 = y2 - g(y1), x1 = y1 - f(x2).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.layers.base import Layer

__all__ = ["RevBlock", "recompute_grad", "rev_block"]

# What `use_data_dep` is by default.
_USE_DEFAULT = "__rev_block_lib_default"


def _listed(function: Any, count: int) -> list[Callable[..., Any]]:
    """A function for each layer; ValueError for a list of another length."""
    if not isinstance(function, list):
        return [function] * count
    if len(function) != count:
        raise ValueError(f"there are {count} layers, but {len(function)} functions")
    return function


class RevBlock(Layer):
    """Reversible residual layers, one after the other.

    Args:
        f, g: functions from a tensor to one of the same shape, or a list of one for each layer. They may make
            variables, in the scopes ``NAME/revlayer_I/f`` and ``…/g``, and use no other tensors.
        num_layers: how many layers there are.
        f_side_input, g_side_input: lists of further tensors, which f and g then get as a second argument.
        use_efficient_backprop: whether activations are computed anew in the backward pass.
        name: of the scope.

    Variables are resource variables. Raises ValueError for a list of another length than there are layers.
    """

    def __init__(
        self,
        f: Any,
        g: Any,
        num_layers: int = 1,
        f_side_input: Sequence[Any] | None = None,
        g_side_input: Sequence[Any] | None = None,
        use_efficient_backprop: bool = True,
        name: str = "revblock",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self._f, self._g = _listed(f, num_layers), _listed(g, num_layers)
        self._f_side, self._g_side = list(f_side_input or ()), list(g_side_input or ())
        self._count, self._is_efficient = num_layers, use_efficient_backprop
        self._scope_name = name
        self._block_scope: Any = None

    def call(self, inputs: Any, forward: bool = True) -> Any:
        """The outputs (y1, y2) of the inputs (x1, x2), or with `forward` False the inputs of the outputs."""
        first, second = inputs
        return self.forward(first, second) if forward else self.backward(first, second)

    def __call__(self, inputs: Any, forward: bool = True) -> Any:
        return self.call(inputs, forward)

    def build(self, _: Any) -> None:
        """Does nothing: variables are made when f and g are first called."""
        self.built = True

    def forward(self, x1: Any, x2: Any) -> tuple[Any, Any]:
        """The outputs."""
        if not self._is_efficient:
            return self._forward(x1, x2)

        @tf.custom_gradient
        def block(x1: Any, x2: Any, *side: Any) -> Any:
            del side
            outputs = self._forward(x1, x2)

            def gradient(dy1: Any, dy2: Any, variables: Sequence[Any] = ()) -> Any:
                found = self._gradients(*outputs, dy1, dy2, list(variables))
                return found if variables else found[0]

            return outputs, gradient

        found: tuple[Any, Any] = block(x1, x2, *self._f_side, *self._g_side)
        return found

    def backward(self, y1: Any, y2: Any) -> tuple[Any, Any]:
        """The inputs, computed from the outputs; after `forward`."""
        with self._opened_scope(reuse=True):
            for i in reversed(range(self._count)):
                y2 = y2 - self._layer(i, "g", y1)
                y1 = y1 - self._layer(i, "f", y2)
        return y1, y2

    def _opened_scope(self, reuse: Any = None) -> Any:
        """The scope of the block, a new one the first time."""
        if self._block_scope is None:
            with tf.variable_scope(None, default_name=self._scope_name, use_resource=True) as scope:
                self._block_scope = scope
        return tf.variable_scope(
            self._block_scope, reuse=reuse or self.built or None, auxiliary_name_scope=False
        )

    def _layer(self, i: int, kind: str, x: Any) -> Any:
        function, side = (self._f, self._f_side) if kind == "f" else (self._g, self._g_side)
        with tf.variable_scope(f"revlayer_{i}"), tf.variable_scope(kind):
            return function[i](x, side) if side else function[i](x)

    def _forward(self, x1: Any, x2: Any) -> tuple[Any, Any]:
        with self._opened_scope() as scope, tf.name_scope(scope.original_name_scope):
            for i in range(self._count):
                x1 = x1 + self._layer(i, "f", x2)
                x2 = x2 + self._layer(i, "g", x1)
        self.built = True
        return tf.identity(x1), tf.identity(x2)

    def _gradients(self, y1: Any, y2: Any, dy1: Any, dy2: Any, variables: list[Any]) -> tuple[Any, Any]:
        """The gradients of inputs and side inputs, and those of the variables."""
        side = [*self._f_side, *self._g_side]
        sums: list[list[Any]] = [[] for _ in (*variables, *side)]

        def pulled(kind: str, i: int, x: Any, dy: Any) -> tuple[Any, Any]:
            """What a function gives for x, and the gradient of x; those of the rest are added up."""
            x = tf.stop_gradient(x)
            value = self._layer(i, kind, x)
            dx, *others = tf.gradients(value, [x, *variables, *side], dy)
            for terms, term in zip(sums, others, strict=True):
                terms.extend([] if term is None else [term])
            return value, dx

        with tf.control_dependencies([dy1, dy2]):  # nothing is computed anew before it is needed
            y1, y2 = tf.identity(y1), tf.identity(y2)
        with self._opened_scope(reuse=True):
            for i in reversed(range(self._count)):
                value, change = pulled("g", i, y1, dy2)
                y2, dy1 = y2 - value, dy1 if change is None else dy1 + change
                value, change = pulled("f", i, y2, dy1)
                y1, dy2 = y1 - value, dy2 if change is None else dy2 + change
        totals = [tf.add_n(terms) if terms else None for terms in sums]
        return [dy1, dy2, *totals[len(variables) :]], totals[: len(variables)]


def rev_block(
    x1: Any,
    x2: Any,
    f: Any,
    g: Any,
    num_layers: int = 1,
    f_side_input: Sequence[Any] | None = None,
    g_side_input: Sequence[Any] | None = None,
    is_training: bool = True,
) -> tuple[Any, Any]:
    """The outputs (y1, y2) of reversible residual layers; see `RevBlock`.

    Args:
        x1, x2: the inputs, of one shape.
        f, g, num_layers, f_side_input, g_side_input: see `RevBlock`.
        is_training: whether activations are computed anew in the backward pass.
    """
    block = RevBlock(f, g, num_layers, f_side_input, g_side_input, use_efficient_backprop=is_training)
    return block.forward(x1, x2)


def recompute_grad(
    fn: Callable[..., Any], use_data_dep: Any = _USE_DEFAULT, tupleize_grads: bool = False
) -> Callable[..., Any]:
    """A function whose activations are not kept, but computed anew in the backward pass.

    Args:
        fn: a function of tensors that gives a tensor, a list or a tuple of them, and uses resource variables
            only. If it takes an argument `is_recomputing`, that is True in the backward pass.
        use_data_dep: of no consequence: control dependencies say when it is computed.
        tupleize_grads: whether no gradient is used before all are there.

    A call raises TypeError for variables of another kind.
    """
    del use_data_dep
    takes_flag = "is_recomputing" in inspect.signature(fn).parameters

    def called(args: Any, is_recomputing: bool) -> Any:
        return fn(*args, is_recomputing=is_recomputing) if takes_flag else fn(*args)

    @tf.custom_gradient
    def wrapped(*args: Any) -> Any:
        scope, graph = tf.get_variable_scope(), tf.get_default_graph()
        before = graph.version
        outputs = called(args, False)
        _check_resources(graph.get_operations()[before:])

        def gradient(*dys: Any, variables: Sequence[Any] = ()) -> Any:
            with tf.control_dependencies(dys):
                inputs = [tf.identity(x) for x in args]
            with tf.variable_scope(scope, reuse=True):
                again = called(inputs, True)
            again = list(again) if isinstance(again, (list, tuple)) else [again]
            found = tf.gradients(again, [*inputs, *variables], list(dys))
            if tupleize_grads:
                found = tf.tuple(found)
            parts = found[: len(inputs)], found[len(inputs) :]
            return parts if variables else parts[0]

        return outputs, gradient

    return wrapped


def _check_resources(operations: Sequence[Any]) -> None:
    """TypeError for variables that are no resource variables."""
    if any(
        each.type in ("Variable", "VariableV2")
        for op in operations
        for each in [op, *(x.op for x in op.inputs)]
    ):
        raise TypeError(
            "All variables used by a function wrapped with @custom_gradient must be `ResourceVariable`s. "
            "Ensure that no `variable_scope` is created with `use_resource=False`."
        )
