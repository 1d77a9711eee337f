"""`tf.data.Options`: wishes how a dataset is computed, which change no element.

Flowstone decides by itself how many threads work and what is joined, but for a shuffle and its repetition, of
which it joins the orders unless the options forbid it. It keeps the others for programs that ask for them.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages

__all__ = ["Options", "ThreadingOptions", "Tunable", "as_optimized", "is_made_apart"]


class _Fields:
    """Attributes with types, None where nothing is wished. AttributeError and TypeError for others."""

    _types: dict[str, type] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name: str) -> Any:
        if name not in self._types:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._values.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._types:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if value is not None and not isinstance(value, self._types[name]):
            raise TypeError(
                f'Property "{name}" must be of type {self._types[name]}, got: {value!r} (type: {type(value)})'
            )
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._types})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values == self._values

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def merge(self, other: Any) -> Any:
        """New options: these, and those of `other` where it has a wish. TypeError for another class."""
        if type(other) is not type(self):
            raise TypeError(
                f"options of class {type(self).__name__} cannot be merged with a {type(other).__name__}"
            )
        merged = type(self)()
        merged._values.update(self._values)
        for name, value in other._values.items():
            own = merged._values.get(name)
            merged._values[name] = (
                own.merge(value) if isinstance(own, _Fields) and value is not None else value
            )
        return merged


class ThreadingOptions(_Fields):
    """`max_intra_op_parallelism` and `private_threadpool_size`, ints: how many threads to use."""

    _types = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class _AutotuneOptions(_Fields):
    _types = {"enabled": bool, "cpu_budget": int, "ram_budget": int}


class _OptimizationOptions(_Fields):
    _types = dict.fromkeys(
        (
            "apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch",
            "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization",
            "noop_elimination", "parallel_batch", "shuffle_and_repeat_fusion",
        ),
        bool,
    )  # fmt: skip


class Options(_Fields):
    """How a dataset is computed, for `Dataset.with_options`.

    Attributes: `threading` (ThreadingOptions; also `experimental_threading`), `deterministic` (also
    `experimental_deterministic`), `experimental_slack`, `experimental_symbolic_checkpoint`,
    `experimental_warm_start` (bools), `autotune`, `experimental_optimization` (with attributes of their own),
    `dataset_name`. None, or options of which all are None, where nothing is wished.
    """

    _types = {
        "autotune": _AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_optimization": _OptimizationOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "threading": ThreadingOptions,
    }
    _other_names = {"experimental_deterministic": "deterministic", "experimental_threading": "threading"}

    def __getattr__(self, name: str) -> Any:
        name = self._other_names.get(name, name)
        kind = self._types.get(name)
        if kind is not None and issubclass(kind, _Fields) and name not in self._values:
            self._values[name] = kind()
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._other_names.get(name, name), value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _wishes(other) == _wishes(self)

    @property
    def joins_shuffles(self) -> bool:
        """Whether a shuffle is joined with the repetition right after it, which decides on the order."""
        chosen = _wishes(self).get("experimental_optimization", {})
        by_default = chosen.get("apply_default_optimizations", True)
        return bool(chosen.get("shuffle_and_repeat_fusion", by_default))

    @property
    def optimizations(self) -> list[str]:
        """What TensorFlow calls the rewritings that are wished."""
        chosen = _wishes(self).get("experimental_optimization", {})
        names = {name for name in _NAMED if chosen.get(name)}
        if chosen.get("apply_default_optimizations", True):
            names.update(name for name in _BY_DEFAULT if chosen.get(name, True))
        if self.deterministic is False:
            names.add("make_sloppy")
        return sorted(names)


_BY_DEFAULT = ("map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion")
_NAMED = (
    *_BY_DEFAULT, "filter_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization",
)  # fmt: skip


def _wishes(options: _Fields) -> dict[str, Any]:
    found = {
        name: _wishes(value) if isinstance(value, _Fields) else value
        for name, value in options._values.items()
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


class Tunable:
    """What has options: a dataset."""

    _options: Options | None = None

    def options(self) -> Options:
        """The options that were given."""
        return self._options or Options()

    @property
    def _is_apart(self) -> bool:
        """Whether its shuffles are not to be joined with their repetitions."""
        return self._options is not None and not self._options.joins_shuffles

    def _as_wished(self) -> contextlib.AbstractContextManager[Any]:
        """A context for the dataset's nodes, which says to the kernel of RepeatDataset what is wished."""
        if not self._is_apart:
            return contextlib.nullcontext()
        apart = messages("attr_value_pb2").AttrValue(b=True)
        return get_default_graph()._attr_scope({"_apart": apart})

    def with_options(self, options: Options) -> Any:
        """The same dataset with these options besides those that it has. TypeError for what are none."""
        found = copy.copy(self)
        found._options = self.options().merge(options)
        return found


def is_made_apart(graph: Any) -> bool:
    """Whether what is added to the graph now has shuffles that are not joined with their repetitions."""
    return "_apart" in graph._scopes.attributes


def as_optimized(dataset: Any) -> Tensor:
    """The dataset as iterators have it: with its options as nodes, which change nothing here."""
    variant: Tensor = dataset._as_variant_tensor()
    options = dataset.options()
    elements = dataset._structure.attributes
    names = options.optimizations
    if names:
        chosen = convert_to_tensor(names, dtypes.string, name="optimizations")
        variant = F.OptimizeDataset(variant, chosen, **elements)
    if options.autotune.enabled is not False:
        variant = F.ModelDataset(variant, **elements)
    return variant
