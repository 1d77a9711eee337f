"""Datasets of what is parsed of serialised Examples: each element of the source is a batch of messages.

The components of an element are in the order of the keys; sparse ones travel as in `data/structure.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import Dataset, Element, dataset_op
from flowstone.ops.datasets.parallel_mapping import MappedAtOnce, calls_at_once
from flowstone.ops.datasets.selection import Derived
from flowstone.ops.parsing.examples import attribute_keys, check_vector
from flowstone.ops.parsing.feature_outputs import Features, batch_outputs, wanted_of
from flowstone.ops.parsing.feature_tensors import Rows

__all__: list[str] = []

_KINDS = "list(type) in [float32, int64, string] >= 0"


def _boxed(parts: Sequence[Any]) -> Any:
    boxes = np.empty(len(parts), object)
    boxes[:] = parts
    return boxes


def _parser(features: Features) -> Callable[..., Element]:
    """What parses a batch, as a function of a step and a vector of messages."""
    keys = [key for key, _ in features.sparse]
    keys += [each.key.encode(errors="surrogateescape") for each in features.dense]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    count, rows = len(features.sparse), Rows()

    def parse(step: Any, serialized: Any) -> Element:
        check_vector(serialized)
        outputs = batch_outputs(serialized, features, rows)
        found = [_boxed(outputs[i : 3 * count : count]) for i in range(count)]
        found += outputs[3 * count :]
        return tuple([found[i] for i in order])

    return parse


def _make_parse_example(node: Node, env: Environment) -> Callable[..., Dataset]:
    attributes, new_step = node.attributes, env.new_step
    sparse = list(zip(attribute_keys(attributes["sparse_keys"]), attributes["sparse_types"]))
    dense_keys, types = attribute_keys(attributes["dense_keys"]), attributes["Tdense"]
    if len(attributes["output_types"]) != len(sparse) + len(dense_keys):
        raise invalid(
            f"Expected {len(sparse) + len(dense_keys)} output types, one a key, but got "
            f"{len(attributes['output_types'])}"
        )

    def make(source: Dataset, number: Any, *defaults: Any) -> Dataset:
        parse = _parser(Features(sparse, wanted_of(dense_keys, types, attributes["dense_shapes"], defaults)))
        calls = calls_at_once(number)
        return Derived(source, lambda each: MappedAtOnce(each, parse, (), calls, new_step))

    return make


parse_example_dataset_op = dataset_op(
    "ExperimentalParseExampleDataset",
    "input_dataset: variant, num_parallel_calls: int64[], dense_defaults: *Tdense",
    _make_parse_example,
    "sparse_keys: list(string) >= 0 ; dense_keys: list(string) >= 0 ; "
    f"sparse_types: {_KINDS} ; Tdense: {_KINDS} ; dense_shapes: list(shape) >= 0 ; sloppy: bool = false",
    keeps=[2],
)
