"""Several steps of a strategy in one run of a session: a loop that takes elements of an iterator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import get_replica_context, in_cross_replica_context
from flowstone.contrib.distribute.reduce_ops import reduce_op_of

__all__ = ["MultiStepContext", "run_steps"]


class MultiStepContext:
    """What the function of a step tells of it.

    `run_op`: the operation that runs all steps; `last_step_outputs`: tensors of the last step by name;
    `non_tensor_outputs`: other values by name.
    """

    def __init__(self) -> None:
        self.run_op: Any = None
        self._outputs: dict[str, Any] = {}
        self._reduce_ops: dict[str, Any] = {}
        self._others: dict[str, Any] = {}

    @property
    def last_step_outputs(self) -> dict[str, Any]:
        """The outputs of the last step by name; of each replica its own where they were not reduced."""
        return self._outputs

    @property
    def non_tensor_outputs(self) -> dict[str, Any]:
        """Values that are no tensors, by name."""
        return self._others

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Says what a step gives under `name`: in a replica reduced over all by `reduce_op`, SUM or MEAN, or
        of each its own; between replicas what has been reduced already."""
        context = get_replica_context()
        if context is None:
            self._outputs[name], self._reduce_ops[name] = output, reduce_op
            return

        def merge(strategy: Any, value: Any) -> None:
            kind = None if reduce_op is None else reduce_op_of(reduce_op)
            self._reduce_ops[name] = kind
            self._outputs[name] = value if kind is None else strategy.reduce(kind, value, axis=None)

        context.merge_call(merge, args=(output,))

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Says another value; in a replica a list of all replicas' values is kept."""
        context = None if in_cross_replica_context() else get_replica_context()
        if context is None:
            self._others[name] = output
            return

        def merge(strategy: Any, value: Any) -> None:
            self._others[name] = list(strategy.experimental_local_results(value))

        context.merge_call(merge, args=(output,))


def run_steps(
    strategy: Any, fn: Callable[..., Any], iterator: Any, iterations: Any, initial_loop_values: Any
) -> MultiStepContext:
    """A loop of steps, each of which is what `fn(context, element)` gives.

    Args:
        strategy: whose replicas the elements are for.
        fn: a function of a `MultiStepContext` and an element, in the cross-replica context; it returns what
            has to run in a step, and tells the context of outputs.
        iterator: gives the elements.
        iterations: how many steps.
        initial_loop_values: for each output that `fn` tells a tensor of its type and shape.
    """
    context = MultiStepContext()
    first = tf.nest.flatten(initial_loop_values or {})

    def body(i: Any, *_: Any) -> Any:
        made = fn(context, iterator.get_next())
        for name, output in context._outputs.items():
            context._outputs[name] = list(strategy.experimental_local_results(output))
        with tf.control_dependencies(tf.nest.flatten(made)):
            return [tf.identity(i + 1), *map(tf.identity, tf.nest.flatten(context._outputs))]

    found = tf.while_loop(
        lambda i, *_: i < iterations, body, [tf.constant(0), *first], parallel_iterations=1, back_prop=False
    )
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    context.run_op = tf.group(*found)
    outputs = tf.nest.pack_sequence_as(context._outputs, found[1:])
    for name, reduce_op in context._reduce_ops.items():
        if reduce_op is not None or len(outputs[name]) == 1:
            outputs[name] = outputs[name][0]
    context._outputs = outputs
    return context
