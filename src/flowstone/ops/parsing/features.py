"""What features of Examples are asked for, and the functions that parse them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import as_shape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import expand_dims, reshape
from flowstone.ops.parsing import examples as _examples  # declares the ops that are asked for by name
from flowstone.ops.parsing import sequences as _sequences
from flowstone.ops.sparse.sparse_conversions import sparse_merge

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
]


class VarLenFeature(NamedTuple):
    """A feature of any number of values of type `dtype`; it becomes a SparseTensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse feature: `value_key` names its values, `index_key` (or a list of them) where they stand.

    `size`: that of the dimension, or a list of sizes. `already_sorted`: whether the places increase.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenFeature(NamedTuple):
    """A feature of a fixed shape; `default_value` stands where it is missing, which is an error without."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of items of a fixed shape, filled up with `default_value` to the longest.

    `allow_missing`: whether it may be missing, and counts as empty.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class _Asked:
    """What `features` ask for: keys and types of sparse features, and dense ones with shapes and defaults."""

    def __init__(self, features: Mapping[str, Any] | None, allowed: tuple[type, ...]) -> None:
        self.sparse: dict[str, Any] = {}
        self.dense: dict[str, Any] = {}
        self.merged: dict[str, SparseFeature] = {}
        self.variable: set[str] = set()
        self.plain: set[str] = set()  # sparse features that are asked for themselves
        for key in sorted(features or {}):
            feature = (features or {})[key]
            if not isinstance(feature, allowed):
                if isinstance(
                    feature, (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)
                ):
                    raise ValueError(f"Unsupported {type(feature).__name__} {feature} for key {key!r}")
                raise ValueError(f"Invalid feature {key}:{feature}.")
            if not getattr(feature, "dtype", None):
                raise ValueError(f"Missing type for feature {key}.")
            self._add(key, feature)

    def _add(self, key: str, feature: Any) -> None:
        if isinstance(feature, VarLenFeature):
            self._add_sparse(key, feature.dtype)
            self.plain.add(key)
        elif isinstance(feature, SparseFeature):
            keys = feature.index_key if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]
            for index_key in sorted(keys):
                self._add_sparse(index_key, dtypes.int64)
            self._add_sparse(feature.value_key, feature.dtype)
            self.merged[key] = feature
        else:
            if feature.shape is None:
                raise ValueError(f"Missing shape for feature {key}.")
            dims = as_shape(feature.shape).dims_tuple
            is_sequence = isinstance(feature, FixedLenSequenceFeature)
            if dims and dims[0] is None and not is_sequence:
                raise ValueError(
                    f"First dimension of shape for feature {key} unknown. "
                    "Consider using FixedLenSequenceFeature."
                )
            if dims is None or None in dims:
                raise ValueError(f"All dimensions of shape for feature {key} need to be known.")
            if is_sequence:
                self.variable.add(key)
            self.dense[key] = feature

    def _add_sparse(self, key: str, dtype: Any) -> None:
        known = self.sparse.setdefault(key, dtypes.as_dtype(dtype))
        if known != dtypes.as_dtype(dtype):
            raise ValueError(f"Conflicting type {known.name} vs {dtypes.as_dtype(dtype).name} for {key}.")

    def sparse_types(self) -> list[Any]:
        """The types of the sparse features."""
        return list(self.sparse.values())

    def dense_types(self) -> list[Any]:
        """The types of the dense features."""
        return [dtypes.as_dtype(feature.dtype) for feature in self.dense.values()]

    def shapes(self) -> list[Any]:
        """The shapes of the dense features, with an unknown first size where they are of any length."""
        return [
            [None, *as_shape(feature.shape).as_list()] if key in self.variable else feature.shape
            for key, feature in self.dense.items()
        ]

    def defaults(self) -> list[Tensor]:
        """The default values of the dense features; an empty one where there is none."""
        return [self._default(key, feature) for key, feature in self.dense.items()]

    def _default(self, key: str, feature: Any) -> Tensor:
        value, dtype = feature.default_value, dtypes.as_dtype(feature.dtype)
        name = "key_" + re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)
        if key in self.variable:
            if value is None:
                value = "" if dtype is dtypes.string else 0
            return convert_to_tensor(value, dtype, name)
        if value is None:
            return constant([], dtype)
        return reshape(convert_to_tensor(value, dtype, name), as_shape(feature.shape).as_list())

    def check_allowed_missing(self) -> None:
        """ValueError for a sequence that must not be missing: an Example cannot say so."""
        for key in self.variable:
            if not self.dense[key].allow_missing:
                raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")

    def tensors(self, outputs: Any, prefix: str = "") -> dict[str, Any]:
        """The tensors by their keys, from an op's outputs; sparse features are merged."""
        parts = [getattr(outputs, f"{prefix}sparse_{what}") for what in ("indices", "values", "shapes")]
        found: dict[str, Any] = dict(zip(self.sparse, map(SparseTensor, *parts)))
        found.update(zip(self.dense, getattr(outputs, f"{prefix}dense_values")))
        for key, feature in sorted(self.merged.items()):
            is_list = isinstance(feature.index_key, (list, tuple))
            ids = [found[k] for k in feature.index_key] if is_list else found[feature.index_key]
            merged = sparse_merge(
                ids, found[feature.value_key], feature.size, already_sorted=feature.already_sorted
            )
            found[key] = merged
        wanted = {*self.plain, *self.dense, *self.merged}
        return {key: value for key, value in found.items() if key in wanted}


_OF_EXAMPLES = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


def parse_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:
    """A batch of serialised Examples as tensors.

    Args:
        serialized: string Tensor [n].
        features: for each key a FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or SparseFeature.
        name: the scope's name.
        example_names: string Tensor [n], what errors call the Examples.

    Returns:
        A dict of keys: Tensors [n, ...] of dense features, SparseTensors of others.

    Raises:
        ValueError: no features, or features that say too little.
        InvalidArgumentError: (in the step) for bytes that are no Example; a feature that is missing, of
            another type, or of another number of values. It names the key and the Example.
    """
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    asked = _Asked(features, _OF_EXAMPLES)
    asked.check_allowed_missing()
    return asked.tensors(_parsed_batch(serialized, asked, name, example_names))


def _parsed_batch(serialized: Any, asked: _Asked, name: str | None, example_names: Any) -> Any:
    with get_default_graph().name_scope(name or "ParseExample"):
        defaults = asked.defaults()
        names = [] if example_names is None else example_names
        return _examples.parse_example_op.several(
            serialized,
            names,
            list(asked.sparse),
            list(asked.dense),
            defaults,
            sparse_types=asked.sparse_types(),
            Tdense=asked.dense_types(),
            dense_shapes=asked.shapes(),
            name="ParseExample",
        )


def parse_single_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:
    """One serialised Example, a string scalar, as tensors: those of `parse_example` without the batch.

    A SparseTensor is a vector. Raises as `parse_example`.
    """
    if not features:
        raise ValueError("Missing features.")
    asked = _Asked(features, _OF_EXAMPLES)
    asked.check_allowed_missing()
    if example_names is not None:
        return _named_single(serialized, asked, name, example_names)
    with get_default_graph().name_scope(name or "ParseSingleExample"):
        outputs = _examples.parse_single_example_op.several(
            serialized,
            asked.defaults(),
            num_sparse=len(asked.sparse),
            sparse_keys=list(asked.sparse),
            dense_keys=list(asked.dense),
            sparse_types=asked.sparse_types(),
            Tdense=asked.dense_types(),
            dense_shapes=asked.shapes(),
            name="ParseSingleExample",
        )
    return asked.tensors(outputs)


def _named_single(serialized: Any, asked: _Asked, name: str | None, names: Any) -> dict[str, Any]:
    with get_default_graph().name_scope(name or "ParseSingleExample"):
        batch = expand_dims(convert_to_tensor(serialized, dtypes.string), 0)
        names = expand_dims(convert_to_tensor(names, dtypes.string), 0)
        found = asked.tensors(_parsed_batch(batch, asked, None, names))
        return {
            key: SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
            if isinstance(value, SparseTensor)
            else F.Squeeze(value, squeeze_dims=[0])
            for key, value in found.items()
        }


# ---- sequences


def _sequence_questions(
    context_features: Mapping[str, Any] | None, sequence_features: Mapping[str, Any] | None
) -> tuple[_Asked, _Asked]:
    if not context_features and not sequence_features:
        raise ValueError("Missing features.")
    return (
        _Asked(context_features, (VarLenFeature, FixedLenFeature)),
        _Asked(sequence_features, (VarLenFeature, FixedLenSequenceFeature)),
    )


def _assumed_empty(lists: _Asked) -> list[str]:
    for key, feature in lists.dense.items():
        if feature.default_value is not None:
            raise ValueError(f"default_value is not supported for the feature list {key}")
    return [key for key, feature in lists.dense.items() if feature.allow_missing]


def _list_shapes(lists: _Asked) -> list[Any]:
    return [feature.shape for feature in lists.dense.values()]


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One serialised SequenceExample, a string scalar, as tensors.

    Args:
        serialized: string scalar.
        context_features: for each key a FixedLenFeature or VarLenFeature.
        sequence_features: for each key of a list of features a FixedLenSequenceFeature or VarLenFeature.
        example_name: string scalar, what errors call it.
        name: the scope's name.

    Returns:
        Two dicts of keys: of the context, as `parse_single_example` gives it; of the lists, Tensors
        [steps, ...] and SparseTensors [steps, values].

    Raises:
        ValueError: no features, or features of other kinds.
        InvalidArgumentError: (in the step) as `parse_example`; for a list that is missing, unless its
            feature allows it.
    """
    context, lists = _sequence_questions(context_features, sequence_features)
    assumed = _assumed_empty(lists)
    with get_default_graph().name_scope(name or "ParseSingleSequenceExample"):
        defaults = context.defaults()
        outputs = _sequences.parse_single_sequence_example_op.several(
            serialized,
            assumed,
            list(context.sparse),
            list(context.dense),
            list(lists.sparse),
            list(lists.dense),
            defaults,
            "" if example_name is None else example_name,
            context_sparse_types=context.sparse_types(),
            Tcontext_dense=context.dense_types(),
            context_dense_shapes=context.shapes(),
            feature_list_sparse_types=lists.sparse_types(),
            feature_list_dense_types=lists.dense_types(),
            feature_list_dense_shapes=_list_shapes(lists),
            name="ParseSingleSequenceExample",
        )
    return context.tensors(outputs, "context_"), lists.tensors(outputs, "feature_list_")


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A batch of serialised SequenceExamples, string [n], as tensors.

    Arguments and errors are those of `parse_single_sequence_example`. Returns three dicts of keys: of the
    context, as `parse_example` gives it; of the lists, Tensors [n, most steps, ...], filled up with zeros,
    and SparseTensors [n, most steps, values]; and the numbers of steps of the dense lists, int64 [n].
    """
    context, lists = _sequence_questions(context_features, sequence_features)
    assumed = _assumed_empty(lists)
    with get_default_graph().name_scope(name or "ParseSequenceExample"):
        names = [] if example_names is None else example_names
        outputs = _sequences.parse_sequence_example_op.several(
            serialized,
            names,
            context.defaults(),
            feature_list_dense_missing_assumed_empty=assumed,
            context_sparse_keys=list(context.sparse),
            context_dense_keys=list(context.dense),
            feature_list_sparse_keys=list(lists.sparse),
            feature_list_dense_keys=list(lists.dense),
            Ncontext_sparse=len(context.sparse),
            Ncontext_dense=len(context.dense),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            context_sparse_types=context.sparse_types(),
            Tcontext_dense=context.dense_types(),
            context_dense_shapes=context.shapes(),
            feature_list_sparse_types=lists.sparse_types(),
            feature_list_dense_types=lists.dense_types(),
            feature_list_dense_shapes=_list_shapes(lists),
            name="ParseSequenceExample",
        )
    lengths = dict(zip(lists.dense, outputs.feature_list_dense_lengths))
    return context.tensors(outputs, "context_"), lists.tensors(outputs, "feature_list_"), lengths
