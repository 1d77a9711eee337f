"""Crosses of features of ragged rows: RaggedCross, with sparse and dense ones beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.sparse.sparse_crosses import (
    KINDS,
    as_array,
    check_sparse_features,
    crossed,
    dense_column,
    joined_texts,
    keyed,
    sparse_column,
)

ragged_cross_op = op(
    "RaggedCross",
    "ragged_values: *ragged_values_types, ragged_row_splits: *ragged_splits_types, "
    "sparse_indices: Nsparse*int64, sparse_values: *sparse_values_types, sparse_shape: Nsparse*int64, "
    "dense_inputs: *dense_types -> output_values: out_values_type, output_row_splits: out_row_splits_type",
    "Nsparse: int >= 0 ; input_order: string ; hashed_output: bool ; num_buckets: int >= 0 ; hash_key: int ; "
    "ragged_values_types: list(type) in [int64, string] >= 0 ; "
    "ragged_splits_types: list(type) in [int32, int64] >= 0 ; "
    "sparse_values_types: list(type) in [int64, string] >= 0 ; "
    f"dense_types: list(type) in [int64, string] >= 0 ; out_values_type: {KINDS} ; "
    "out_row_splits_type: type in [int32, int64]",
    cost=50,
).not_differentiable()


@ragged_cross_op.infer
def _(node: Node) -> Shapes:
    ragged, dense = len(node.attributes["ragged_values_types"]), len(node.attributes["dense_types"])
    splits = node.dims(ragged) if ragged else None
    if splits is None and dense:
        rows = node.dims(len(node.inputs) - dense)
        splits = None if not rows or rows[0] is None else (rows[0] + 1,)
    return [(None,), splits or (None,)]


@ragged_cross_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    given = node.attributes
    ragged, sparse = len(given["ragged_values_types"]), given["Nsparse"]
    dense = len(given["dense_types"])
    order = given["input_order"]
    order = order.decode() if isinstance(order, bytes) else str(order)
    combine: Any = keyed(given["hash_key"], given["num_buckets"])
    if given["out_values_type"] is dtypes.string:
        combine = joined_texts(b"_X_")

    def cross(*inputs: Any) -> tuple[Any, torch.Tensor]:
        if sorted(order) != sorted("R" * ragged + "S" * sparse + "D" * dense):
            raise invalid(f"input_order {order!r} does not name {ragged} R, {sparse} S and {dense} D")
        rest = list(inputs)
        parts = [[rest.pop(0) for _ in range(n)] for n in (ragged, ragged, sparse, sparse, sparse, dense)]
        check_sparse_features(*parts[2:5])
        splits = [each.numpy() for each in parts[1]]
        sizes = [len(each) - 1 for each in splits]
        sizes += [int(each[0]) for each in parts[4]] + [each.shape[0] for each in parts[5]]
        if len(set(sizes)) > 1 or any(size < 0 for size in sizes):
            raise invalid(f"Expected equal batch sizes, got {sizes}")
        for each, values in zip(splits, parts[0]):
            if int(each[0]) or int(each[-1]) != len(values) or (np.diff(each) < 0).any():
                raise invalid(f"Invalid row splits {each.tolist()[:20]} of {len(values)} values")
        if any(each.ndim != 2 for each in parts[5]):
            raise invalid("Dense inputs should be matrices")
        batch = sizes[0] if sizes else 0
        kinds = {
            "R": [(each[:-1], np.diff(each), as_array(values)) for each, values in zip(splits, parts[0])],
            "S": [sparse_column(rows, values, batch) for rows, values in zip(parts[2], parts[3])],
            "D": [dense_column(each, batch) for each in parts[5]],
        }
        columns = [kinds[each].pop(0) for each in order]
        rows, values, _ = crossed(columns, batch, combine)
        counts = np.bincount(rows[:, 0].numpy(), minlength=batch)
        ends = torch.from_numpy(np.append(0, np.cumsum(counts)))
        return values, ends.to(given["out_row_splits_type"].torch)

    return cross
