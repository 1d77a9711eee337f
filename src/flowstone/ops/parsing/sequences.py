"""The ops that parse serialised SequenceExamples: a context, and lists of features, one a step.

Outputs are those of an Example for the context, then for the lists all indices, all values and all shapes of
sparse ones, and dense ones; a batch has also the lengths of the dense ones, and ragged lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.parsing.columns import KIND_OF, within
from flowstone.ops.parsing.examples import attribute_keys, check_vector, checked_names, key_list
from flowstone.ops.parsing.feature_lists import FeatureLists, Lists
from flowstone.ops.parsing.feature_outputs import Features, batch_outputs, single_outputs, wanted_of
from flowstone.ops.parsing.feature_tensors import Rows, Wanted, as_value, dense, zero_of
from flowstone.ops.parsing.layouts import Array

KINDS = "list(type) in [float32, int64, string] >= 0"


def _dense_steps(lists: Lists, wanted: Wanted, rows: Rows) -> Array:
    """[all steps, *dims]."""
    owners = np.repeat(np.arange(len(lists.steps)), lists.steps)
    missing = ~lists.column.is_there
    if missing.any():
        row = int(owners[missing.argmax()])
        raise invalid(f"{rows.key(row, wanted.key)}  A step of the feature list has no values")
    return dense(lists.column, wanted, rows.of(owners))


def padded_steps(lists: Lists, wanted: Wanted, rows: Rows) -> Array:
    """[messages, longest, *dims], filled up with zeros."""
    values = _dense_steps(lists, wanted, rows)
    longest = int(lists.steps.max(initial=0))
    out = np.full((len(lists.steps), longest, *wanted.dims), zero_of(values.dtype), values.dtype)
    out[np.arange(longest) < lists.steps[:, None]] = values
    return out


def sparse_steps(lists: Lists) -> tuple[Array, Array, Array]:
    """Indices [n, 3], values and the shape, [messages, most steps, most values of a step]."""
    steps, counts = lists.steps, lists.column.counts
    owners = np.repeat(np.arange(len(steps)), steps)
    columns = [np.repeat(owners, counts), np.repeat(within(steps), counts), within(counts)]
    sizes = [len(steps), steps.max(initial=0), counts.max(initial=0)]
    return np.stack(columns, axis=1), lists.column.values, np.array(sizes, np.int64)


def no_default(key: bytes, dtype: Any, dims: Any) -> Wanted:
    return Wanted(key.decode(errors="surrogateescape"), dtype, dims, np.empty(0, dtype.as_numpy_dtype))


def check_shapes(node: Node, kinds: Sequence[str]) -> None:
    for kind, types in zip(kinds, ("Tcontext_dense", "feature_list_dense_types")):
        for form, of_form in (("sparse", f"{kind}_sparse_types"), ("dense", types)):
            count, found = node.attributes.get(f"N{kind}_{form}"), len(node.attributes[of_form])
            keys = node.attributes.get(f"{kind}_{form}_keys")
            if count not in (None, found) and (form, kind) != ("dense", "context"):
                raise ValueError(f"num_{kind}_{form} ({count}) must match the size of {of_form} ({found})")
            if keys is not None and len(keys) != found:
                raise ValueError(
                    f"{kind}_{form}_keys ({len(keys)}) must match the size of {of_form} ({found})"
                )
        shapes = node.attributes[f"{kind}_dense_shapes"]
        if len(shapes) != len(node.attributes[types]):
            raise ValueError(f"len({kind}_dense_shapes) != len({types})")
        for dims in shapes:
            if dims is None or None in dims:
                raise ValueError(f"{kind}_dense_shapes must be fully defined, but got {dims}")


# ---- one

CONTEXT = (
    "context_sparse_indices: Ncontext_sparse*int64, context_sparse_values: *context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse*int64, context_dense_values: *Tcontext_dense"
)
LISTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse*int64, "
    "feature_list_sparse_values: *feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse*int64, "
    "feature_list_dense_values: *feature_list_dense_types"
)
_COUNTS = " ; ".join(
    f"N{kind}: int >= 0 = 0"
    for kind in ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
)
_TYPES_AND_SHAPES = (
    f"context_sparse_types: {KINDS} = [] ; Tcontext_dense: {KINDS} = [] ; "
    f"feature_list_dense_types: {KINDS} = [] ; context_dense_shapes: list(shape) >= 0 = [] ; "
    f"feature_list_sparse_types: {KINDS} = [] ; feature_list_dense_shapes: list(shape) >= 0 = []"
)

parse_single_sequence_example_op = op(
    "ParseSingleSequenceExample",
    "serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse*string, context_dense_keys: Ncontext_dense*string, "
    "feature_list_sparse_keys: Nfeature_list_sparse*string, "
    "feature_list_dense_keys: Nfeature_list_dense*string, "
    f"context_dense_defaults: *Tcontext_dense, debug_name: string -> {CONTEXT}, {LISTS}",
    f"{_COUNTS} ; {_TYPES_AND_SHAPES}",
)
parse_single_sequence_example_op.no_gradient()


@parse_single_sequence_example_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 0)
    require_rank(node.dims(1), 1)
    check_shapes(node, ("context", "feature_list"))
    attributes = node.attributes
    shapes: list[Any] = []
    for kind, rank in (("context", 1), ("feature_list", 2)):
        count = len(attributes[f"{kind}_sparse_types"])
        shapes += [(None, rank)] * count + [(None,)] * count + [(rank,)] * count
        steps = (None,) if kind == "feature_list" else ()
        shapes += [(*steps, *dims) for dims in attributes[f"{kind}_dense_shapes"]]
    return shapes


def _cut(values: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    """Parts of these lengths."""
    parts, at = [], 0
    for count in counts:
        parts.append(values[at : at + count])
        at += count
    return parts


@parse_single_sequence_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    types = [
        attributes[name]
        for name in (
            "context_sparse_types", "Tcontext_dense", "feature_list_sparse_types", "feature_list_dense_types",
        )
    ]  # fmt: skip
    counts = [*map(len, types), len(types[1])]

    def run(serialized: Array, assumed: Array, *rest: Any) -> tuple[Any, ...]:
        if serialized.ndim:
            raise invalid(f"Expected serialized to be a scalar, got shape: {format_dims(serialized.shape)}")
        *keys, defaults = _cut(rest, counts)
        names = [[key_list(key)[0] for key in each] for each in keys]
        rows = Rows([rest[-1].item()] if rest[-1].size else ())
        shapes = attributes["context_dense_shapes"]
        context = Features(list(zip(names[0], types[0])), wanted_of(names[1], types[1], shapes, defaults))
        outputs = list(single_outputs(serialized, context))
        asked = [(k, KIND_OF[t]) for i in (2, 3) for k, t in zip(names[i], types[i])]
        lists = FeatureLists(serialized.reshape(1), asked)
        parts = [sparse_steps(lists.lists(*each, rows, True)) for each in asked[: len(names[2])]]
        outputs += [as_value(indices[:, 1:]) for indices, _, _ in parts]
        outputs += [as_value(values) for _, values, _ in parts]
        outputs += [as_value(sizes[1:]) for _, _, sizes in parts]
        optional = set(assumed.reshape(-1).tolist())
        for key, dtype, dims in zip(names[3], types[3], attributes["feature_list_dense_shapes"]):
            found = lists.lists(key, KIND_OF[dtype], rows, key in optional)
            outputs.append(as_value(_dense_steps(found, no_default(key, dtype, dims), rows)))
        return tuple(outputs)

    return run


# ---- a batch


def _batch(
    serialized: Array, rows: Rows, context: Features, sparse: Any, lists: Sequence[Wanted],
    optional: Collection[bytes],
) -> tuple[Any, ...]:  # fmt: skip
    """The outputs for a batch: of its context, of sparse lists (keys and types) and of dense ones."""
    outputs = list(batch_outputs(serialized, context, rows))
    asked = [(key, KIND_OF[dtype]) for key, dtype in sparse]
    dense_keys = [each.key.encode(errors="surrogateescape") for each in lists]
    kinds = [(key, KIND_OF[each.dtype]) for key, each in zip(dense_keys, lists)]
    found_lists = FeatureLists(serialized, [*asked, *kinds])
    parts = [sparse_steps(found_lists.lists(*each, rows, True)) for each in asked]
    outputs += [as_value(part[i]) for i in range(3) for part in parts]
    lengths = []
    for (key, kind), wanted in zip(kinds, lists):
        found = found_lists.lists(key, kind, rows, key in optional)
        outputs.append(as_value(padded_steps(found, wanted, rows)))
        lengths.append(as_value(found.steps))
    return (*outputs, *lengths)


parse_sequence_example_op = op(
    "ParseSequenceExample",
    f"serialized: string, debug_name: string, context_dense_defaults: *Tcontext_dense -> {CONTEXT}, "
    f"{LISTS}, feature_list_dense_lengths: Nfeature_list_dense*int64",
    "feature_list_dense_missing_assumed_empty: list(string) >= 0 ; context_sparse_keys: list(string) >= 0 ; "
    "context_dense_keys: list(string) >= 0 ; feature_list_sparse_keys: list(string) >= 0 ; "
    f"feature_list_dense_keys: list(string) >= 0 ; {_COUNTS} ; {_TYPES_AND_SHAPES}",
)
parse_sequence_example_op.no_gradient()


@parse_sequence_example_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 1)
    check_shapes(node, ("context", "feature_list"))
    attributes, rows = node.attributes, node.dims(0) or (None,)
    shapes: list[Any] = []
    for kind, rank in (("context", 2), ("feature_list", 3)):
        count = len(attributes[f"{kind}_sparse_types"])
        shapes += [(None, rank)] * count + [(None,)] * count + [(rank,)] * count
        steps = (None,) if kind == "feature_list" else ()
        shapes += [(*rows, *steps, *dims) for dims in attributes[f"{kind}_dense_shapes"]]
    return shapes + [rows] * len(attributes["feature_list_dense_types"])


@parse_sequence_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    names = {
        kind: attribute_keys(attributes[f"{kind}_keys"])
        for kind in ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    }
    optional = set(attribute_keys(attributes["feature_list_dense_missing_assumed_empty"]))
    dense_types, shapes = attributes["feature_list_dense_types"], attributes["feature_list_dense_shapes"]
    lists = [no_default(*each) for each in zip(names["feature_list_dense"], dense_types, shapes)]
    sparse_lists = list(zip(names["feature_list_sparse"], attributes["feature_list_sparse_types"]))

    def run(serialized: Array, debug_name: Array, *defaults: Any) -> tuple[Any, ...]:
        wanted = wanted_of(
            names["context_dense"], attributes["Tcontext_dense"], attributes["context_dense_shapes"], defaults
        )
        sparse_context = list(zip(names["context_sparse"], attributes["context_sparse_types"]))
        check_vector(serialized)
        rows = Rows(checked_names(debug_name, len(serialized)))
        return _batch(serialized, rows, Features(sparse_context, wanted), sparse_lists, lists, optional)

    return run
