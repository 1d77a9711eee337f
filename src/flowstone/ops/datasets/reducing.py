"""ReduceDataset: what a function makes of a state and each element of a dataset in turn."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.kernel import CPU, Environment, StepCall
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.datasets.iteration import Dataset
from flowstone.ops.randomness.op_seeds import OwnPlaces

__all__: list[str] = []

reduce_dataset_op = op(
    "ReduceDataset",
    "input_dataset: variant, initial_state: *Tstate, other_arguments: *Targuments -> "
    "components: *output_types",
    "f: func ; Tstate: list(type) >= 1 ; Targuments: list(type) >= 0 ; output_types: list(type) >= 1 ; "
    "output_shapes: list(shape) >= 1 ; use_inter_op_parallelism: bool = true ; metadata: string = ''",
    stateful=True,
    overlapping=True,
    capturable=False,
)
reduce_dataset_op.not_differentiable()


@reduce_dataset_op.infer
def _(node: Node) -> Shapes:
    return list(node.attributes["output_shapes"])


@reduce_dataset_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    function = env.function(node, node.attributes["f"])
    count = len(node.attributes["Tstate"])

    def reduce(step: Any, source: Dataset, *rest: Any) -> tuple[Any, ...]:
        state, captured = rest[:count], rest[count:]
        call = OwnPlaces(function)
        iteration = source.iterate()
        try:
            while (element := iteration.next(step)) is not None:
                step.check()
                state = tuple(call(step, *state, *element, *captured))
        finally:
            iteration.close()
        return state

    return StepCall(reduce)
