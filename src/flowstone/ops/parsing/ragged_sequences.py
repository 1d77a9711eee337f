"""The later op that parses serialised SequenceExamples, a batch or one, also into ragged lists.

Its keys are inputs. The parts of the outputs are those of `sequences.py`, the ragged ones after the dense
ones: of the context values and row splits, of the lists values, the splits of the messages and those of the
steps. One message has outputs without the dimension of the batch, and no splits of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.columns import KIND_OF
from flowstone.ops.parsing.examples import check_vector, checked_names, key_list
from flowstone.ops.parsing.feature_lists import FeatureLists, Lists
from flowstone.ops.parsing.feature_outputs import Features, batch_outputs, single_outputs, wanted_of
from flowstone.ops.parsing.feature_tensors import Rows, as_value, splits
from flowstone.ops.parsing.layouts import Array
from flowstone.ops.parsing.sequences import (
    CONTEXT,
    KINDS,
    LISTS,
    check_shapes,
    no_default,
    padded_steps,
    sparse_steps,
)

__all__: list[str] = []

_KEYS = ("context_sparse", "context_dense", "context_ragged", "feature_list_sparse", "feature_list_dense",
         "feature_list_ragged")  # fmt: skip


class _Asked(NamedTuple):
    """The lists that are asked for: sparse ones, dense ones, which of these may be missing, and ragged ones
    with the type of their splits."""

    sparse: Sequence[tuple[bytes, DType]]
    dense: Sequence[tuple[bytes, DType, Any]]
    assumed_empty: Sequence[bool]
    ragged: Sequence[tuple[bytes, DType, DType]]


def _list_outputs(texts: Array, asked: _Asked, rows: Rows, is_one: bool) -> list[Any]:
    """The outputs for the lists."""
    keys = [*asked.sparse, *[each[:2] for each in asked.dense], *[each[:2] for each in asked.ragged]]
    kinds = [(key, KIND_OF[dtype]) for key, dtype in keys]
    all_lists = FeatureLists(texts, kinds)

    def lists(key: bytes, dtype: DType, is_optional: bool = True) -> Lists:
        return all_lists.lists(key, KIND_OF[dtype], rows, is_optional)

    first = 1 if is_one else 0
    parts = [sparse_steps(lists(*each)) for each in asked.sparse]
    outputs: list[Any] = [indices[:, first:] for indices, _, _ in parts]
    outputs += [values for _, values, _ in parts]
    outputs += [sizes[first:] for _, _, sizes in parts]
    dense = [lists(key, dtype, skips) for (key, dtype, _), skips in zip(asked.dense, asked.assumed_empty)]
    for found, each in zip(dense, asked.dense):
        values = padded_steps(found, no_default(*each), rows)
        outputs.append(values[0] if is_one else values)
    outputs += [found.steps.reshape(()) if is_one else found.steps for found in dense]
    ragged = [(lists(key, dtype), kind.as_numpy_dtype) for key, dtype, kind in asked.ragged]
    outputs += [found.column.values for found, _ in ragged]
    outputs += [splits(found.steps, kind)[: 0 if is_one else None] for found, kind in ragged]
    outputs += [splits(found.column.counts, kind) for found, kind in ragged]
    return [as_value(each) for each in outputs]


parse_sequence_example_v2_op = op(
    "ParseSequenceExampleV2",
    "serialized: string, debug_name: string, "
    + ", ".join(f"{kind}_keys: string" for kind in _KEYS)
    + ", feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: *Tcontext_dense -> "
    f"{CONTEXT}, context_ragged_values: *context_ragged_value_types, "
    f"context_ragged_row_splits: *context_ragged_split_types, {LISTS}, "
    "feature_list_dense_lengths: Nfeature_list_dense*int64, "
    "feature_list_ragged_values: *feature_list_ragged_value_types, "
    "feature_list_ragged_outer_splits: *feature_list_ragged_split_types, "
    "feature_list_ragged_inner_splits: *feature_list_ragged_split_types",
    f"Ncontext_sparse: int >= 0 = 0 ; Tcontext_dense: {KINDS} = [] ; context_sparse_types: {KINDS} = [] ; "
    f"context_ragged_value_types: {KINDS} = [] ; "
    "context_ragged_split_types: list(type) in [int32, int64] >= 0 = [] ; "
    "context_dense_shapes: list(shape) >= 0 = [] ; Nfeature_list_sparse: int >= 0 = 0 ; "
    f"Nfeature_list_dense: int >= 0 = 0 ; feature_list_dense_types: {KINDS} = [] ; "
    f"feature_list_sparse_types: {KINDS} = [] ; feature_list_ragged_value_types: {KINDS} = [] ; "
    "feature_list_ragged_split_types: list(type) in [int32, int64] >= 0 = [] ; "
    "feature_list_dense_shapes: list(shape) >= 0 = []",
)
parse_sequence_example_v2_op.no_gradient()


@parse_sequence_example_v2_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
    check_shapes(node, ("context", "feature_list"))
    attributes = node.attributes
    # One message, a batch, or nobody knows.
    extra = 0 if dims is None else len(dims)
    rows: Any = None if dims is None else dims
    splits_dims = (dims[0] + 1,) if dims and dims[0] is not None else (None,)
    shapes: list[Any] = []
    for kind, rank in (("context", 1), ("feature_list", 2)):
        count, size = len(attributes[f"{kind}_sparse_types"]), None if rows is None else rank + extra
        shapes += [(None, size)] * count + [(None,)] * count + [(size,)] * count
        steps = (None,) if kind == "feature_list" else ()
        for each in attributes[f"{kind}_dense_shapes"]:
            shapes.append(None if rows is None else (*rows, *steps, *each))
        if kind == "feature_list":
            shapes += [rows] * len(attributes["feature_list_dense_types"])
        ragged = len(attributes[f"{kind}_ragged_value_types"])
        shapes += [(None,)] * ragged + [splits_dims] * ragged
    return shapes + [(None,)] * len(attributes["feature_list_ragged_value_types"])


def _checked(what: str, keys: Sequence[Any], types: Sequence[Any]) -> None:
    if len(keys) != len(types):
        raise invalid(f"Expected {len(types)} of {what}, one a type, but got {len(keys)}")


@parse_sequence_example_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    types = [
        attributes[name]
        for name in ("context_sparse_types", "Tcontext_dense", "context_ragged_value_types",
                     "feature_list_sparse_types", "feature_list_dense_types",
                     "feature_list_ragged_value_types")
    ]  # fmt: skip

    def run(serialized: Array, names: Array, *rest: Any) -> tuple[Any, ...]:
        keys, assumed, defaults = (
            [key_list(each) for each in rest[:6]],
            rest[6].reshape(-1).tolist(),
            rest[7:],
        )
        for kind, found, wanted_types in zip(_KEYS, keys, types):
            _checked(f"{kind}_keys", found, wanted_types)
        _checked("feature_list_dense_missing_assumed_empty", assumed, types[4])
        wanted = wanted_of(keys[1], types[1], attributes["context_dense_shapes"], defaults)
        context = Features(
            list(zip(keys[0], types[0])), wanted,
            list(zip(keys[2], types[2], attributes["context_ragged_split_types"])),
        )  # fmt: skip
        asked = _Asked(
            list(zip(keys[3], types[3])),
            list(zip(keys[4], types[4], attributes["feature_list_dense_shapes"])),
            assumed,
            list(zip(keys[5], types[5], attributes["feature_list_ragged_split_types"])),
        )
        if not serialized.ndim:
            own = names.reshape(-1).tolist()
            outputs = single_outputs(serialized, context, own)
            return (*outputs, *_list_outputs(serialized.reshape(1), asked, Rows(own), True))
        check_vector(serialized)
        rows = Rows(checked_names(names, len(serialized)))
        outputs = batch_outputs(serialized, context, rows)
        return (*outputs, *_list_outputs(serialized, asked, rows, False))

    return run
