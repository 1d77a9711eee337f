"""Ops that later versions of TensorFlow put around datasets, to tune them: the elements stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.ops.datasets.iteration import Dataset, dataset_op

__all__: list[str] = []


def _make(node: Node, env: Environment) -> Callable[..., Dataset]:
    return _first


def _first(source: Dataset, *unused: Any) -> Dataset:
    return source


latency_stats_dataset_op = dataset_op("LatencyStatsDataset", "input_dataset: variant, tag: string", _make)
model_dataset_op = dataset_op(
    "ModelDataset", "input_dataset: variant", _make,
    "algorithm: int = 0 ; cpu_budget: int = 0 ; ram_budget: int = 0",
)  # fmt: skip
optimize_dataset_op = dataset_op(
    "OptimizeDataset", "input_dataset: variant, optimizations: string", _make, "",
    "output_types: list(type) >= 1 ; output_shapes: list(shape) >= 1 ; "
    "optimization_configs: list(string) = []",
)  # fmt: skip
options_dataset_op = dataset_op(
    "OptionsDataset", "input_dataset: variant", _make,
    "serialized_options: string ; metadata: string = ''",
)  # fmt: skip
