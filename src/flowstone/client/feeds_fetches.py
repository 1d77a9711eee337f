"""Feeds and fetches: between the user's nested Python values and a plan's flat lists.

Fetches may be nested lists, tuples, named tuples, mappings, instances of attrs classes, and sparse values;
`FetchStructure` flattens them to graph elements and rebuilds the results in the same form. A mapping is
rebuilt by its type from a dict, a defaultdict with its default. A subclass of list becomes a list. A subclass
of tuple is rebuilt by its `__new__` if it defines one, else it becomes a tuple. `feed_converter` and
`fetch_converter` make the functions that convert one value on its way in or out; they are made once per plan
and know the value's type and static shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.errors import InaccessibleTensorError
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors.composite import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
)
from flowstone.framework.tensors.dispatch import Ragged
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import is_compatible
from flowstone.framework.types.values import as_bytes_array, to_numpy, to_runtime
from flowstone.runtime.execution.transfers import to_device

_NEW_TUPLE = tuple.__new__

# ---- fetches


class Conversion(NamedTuple):
    """How objects of one type are fetched and fed.

    ``fetch(value)`` gives what to fetch and a function from its values to the result; ``feed(key, value)``
    gives pairs of a tensor and its value.
    """

    type: type
    fetch: Callable[[Any], Any]
    feed: Callable[[Any, Any], Any] | None


_conversions: list[Conversion] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], Any],
    feed_function: Callable[[Any, Any], Any] | None = None,
    feed_function_for_partial_run: Callable[[Any], Any] | None = None,
) -> None:
    """Has sessions fetch and feed objects of a type that is no tensor.

        register_session_run_conversion_functions(
            SquaredTensor, lambda s: ([s.tensor], lambda values: values[0]**2), lambda s, v: [(s.tensor, v)]
        )

    Args:
        tensor_type: the type.
        fetch_function: from an object to the list of what to fetch for it, and a function from the list of
            its values to the result.
        feed_function: from an object and what is fed for it to pairs of a tensor and its value; without it
            the type cannot be fed.
        feed_function_for_partial_run: taken, and not needed: a partial run names tensors.

    Raises ValueError if the type or one above it is registered already.
    """
    for conversion in _conversions:
        if issubclass(tensor_type, conversion.type):
            raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _conversions.insert(0, Conversion(tensor_type, fetch_function, feed_function))


def conversion_of(value: Any) -> Conversion | None:
    """How an object is fetched and fed, if its type has been registered."""
    for conversion in _conversions:
        if isinstance(value, conversion.type):
            return conversion
    return None


class FetchStructure:
    """The form of one `fetches` argument: `elements` (tensors, without repetition), `targets` (operations),
    and `rebuild`, a function of the elements' values, in their order, that gives the results in that form.
    """

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self._graph = graph
        self._positions: dict[Tensor, int] = {}
        self._targets: dict[Operation, None] = {}
        self._names: dict[str, Any] = {}
        expression = self._visit(fetches)
        self.elements = list(self._positions)
        self.targets = list(self._targets)
        self.rebuild: Callable[[Sequence[Any]], Any] = eval(f"lambda values: {expression}", self._names)

    def converters(self, copied: Sequence[bool]) -> list[Callable[[Any], Any]]:
        """The functions that convert the elements' runtime values; `copied`: see `fetch_converter`."""
        return [fetch_converter(tensor, each) for tensor, each in zip(self.elements, copied)]

    def _visit(self, fetch: Any) -> str:
        """The expression of the result for `fetch`."""
        if fetch is None:
            raise TypeError("Argument `fetch` = None has invalid type NoneType. Cannot be None")
        if isinstance(fetch, (list, tuple)):
            return self._visit_sequence(fetch)
        if isinstance(fetch, Mapping):
            return self._visit_mapping(fetch)
        if isinstance(fetch, SparseTensor):
            return self._call(SparseTensorValue, [fetch.indices, fetch.values, fetch.dense_shape])
        if isinstance(fetch, IndexedSlices):
            parts = [self._visit(fetch.values), self._visit(fetch.indices)]
            parts.append("None" if fetch.dense_shape is None else self._visit(fetch.dense_shape))
            return f"{self._name(IndexedSlicesValue)}({', '.join(parts)})"
        if isinstance(fetch, Ragged):
            return self._call(fetch._fetched, fetch._components())
        if hasattr(fetch, "__attrs_attrs__"):
            parts = [
                f"{_argument(attribute)}={self._visit(getattr(fetch, attribute.name))}"
                for attribute in fetch.__attrs_attrs__
            ]
            return f"{self._name(type(fetch))}({', '.join(parts)})"
        return self._visit_element(fetch)

    def _visit_mapping(self, fetch: Mapping[Any, Any]) -> str:
        items = ", ".join([f"{self._name(key)}: {self._visit(fetch[key])}" for key in fetch])
        if isinstance(fetch, defaultdict):
            return f"{self._name(defaultdict)}({self._name(fetch.default_factory)}, {{{items}}})"
        return f"{{{items}}}" if type(fetch) is dict else f"{self._name(type(fetch))}({{{items}}})"

    def _visit_sequence(self, fetch: Any) -> str:
        if isinstance(fetch, tuple) and (hasattr(fetch, "_fields") or type(fetch).__new__ is not _NEW_TUPLE):
            return self._call(type(fetch), fetch)
        parts = ", ".join([self._visit(item) for item in fetch])
        if isinstance(fetch, tuple):
            return f"({parts},)" if len(fetch) else "()"
        return f"[{parts}]"

    def _call(self, function: Callable[..., Any], arguments: Iterable[Any]) -> str:
        return f"{self._name(function)}({', '.join([self._visit(item) for item in arguments])})"

    def _name(self, value: Any) -> str:
        """The name by which expressions refer to this object."""
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def _visit_registered(self, conversion: Conversion, fetch: Any) -> str:
        parts, contract = conversion.fetch(fetch)
        return f"{self._name(contract)}([{', '.join([self._visit(part) for part in parts])}])"

    def _visit_element(self, fetch: Any) -> str:
        conversion = conversion_of(fetch)
        if conversion is not None:
            return self._visit_registered(conversion, fetch)
        try:
            element = self._graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch)}, must be a string or Tensor. "
                f"({error})"
            ) from None
        except (ValueError, KeyError) as error:
            text = error.args[0] if error.args else error
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({text})"
            ) from None
        if not self._graph.is_fetchable(element):
            operation = element if isinstance(element, Operation) else element.op
            raise InaccessibleTensorError(
                f"Operation {operation.name!r} has been marked as not fetchable. Typically this happens when "
                "it is defined in another function or code block. Use return values,explicit Python locals "
                "or TensorFlow collections to access it."
            )
        if isinstance(element, Operation):
            self._targets[element] = None
            return "None"
        return f"values[{self._positions.setdefault(element, len(self._positions))}]"


class RuntimeValues(FetchStructure):
    """Tensors of which the runtime's own values are the results, as a list."""

    def __init__(self, graph: Graph, tensors: Sequence[Tensor]) -> None:
        super().__init__(graph, list(tensors))

    def converters(self, copied: Sequence[bool]) -> list[Callable[[Any], Any]]:
        """As in a `FetchStructure`; the receiver overwrites nothing, so that nothing is copied."""
        return [_as_it_is for _ in self.elements]


def _as_it_is(value: Any) -> Any:
    return value


def plan_key(structure: FetchStructure, feeds: Sequence[Tensor]) -> tuple[Any, Any, Any]:
    """The key that plans of the same fetches and feeds have in common."""
    return tuple(structure.elements), tuple(structure.targets), tuple(feeds)


def is_open(tensor: Tensor) -> bool:
    """Whether the fed value may have a shape that the static shape does not determine."""
    dtype = tensor.dtype.base_dtype
    return (dtype.torch is not None or dtype is dtypes.string) and has_open_dims(tensor)


def has_open_dims(tensor: Tensor) -> bool:
    """Whether its rank or a size is unknown."""
    return tensor.dims is None or None in tensor.dims


def _argument(attribute: Any) -> str:
    """The name of this attribute among the arguments of the attrs class."""
    return str(getattr(attribute, "alias", None) or attribute.name.lstrip("_"))


def fetch_converter(tensor: Tensor, copied: bool) -> Callable[[Any], Any]:
    """The function that converts a fetched runtime value to a NumPy array, or to a NumPy scalar for rank 0.

    `copied`: the value shares memory with something that outlives the step or that the user holds.
    """
    dtype = tensor.dtype.base_dtype
    if dtype.torch is None:
        return _fetch_strings if dtype is dtypes.string else _fetch_handle
    plain = dtype is not dtypes.bfloat16 and not dtype.is_complex
    if plain and tensor.dims == () and not dtype.is_quantized:
        return _scalar_fetcher(dtype.as_numpy_dtype)
    if not plain:
        return lambda value: np.array(to_numpy(value, dtype), copy=True, order="C")[()]
    return _fetch_copy if copied else _fetch_array


def _scalar_fetcher(scalar: Callable[[Any], Any]) -> Callable[[torch.Tensor], Any]:
    read = torch.Tensor.item  # half the time of an array of rank 0 and its element

    def fetch_scalar(value: torch.Tensor) -> Any:
        return scalar(read(value))

    return fetch_scalar


def _fetch_array(value: torch.Tensor) -> Any:
    return (
        value.contiguous().numpy(force=True)[()] if value.dim() == 0 else value.contiguous().numpy(force=True)
    )


def _fetch_copy(value: torch.Tensor) -> Any:
    if value.device.type == "cpu":
        value = value.clone(memory_format=torch.contiguous_format)
    return _fetch_array(value)


def fed_strings(elements: Sequence[Any], feeds: Sequence[Tensor]) -> dict[int, int]:
    """Which fetched elements are strings that are fed, and as which feed: they come back by `as_given`."""
    places = {x: i for i, x in enumerate(feeds) if x.dtype.base_dtype is dtypes.string}
    return {i: places[x] for i, x in enumerate(elements) if x in places}


def as_given(value: Any) -> Any:
    """A fed string as its fetch gives it: what was fed, str or bytes, or an array of them."""
    return np.asarray(value, dtype=object)[()]


def _fetch_strings(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _fetch_handle(value[()]) if value.ndim == 0 else value.copy()
    return value


def _fetch_handle(value: Any) -> Any:
    """What users get for a handle: of a tensor that stays in the session, an object that frees it."""
    return value if type(value) is bytes else getattr(value, "fetched", lambda: value)()


# ---- feeds


def feed_elements(graph: Graph, key: Any, value: Any) -> list[tuple[Tensor, Any]]:
    """The (tensor, value) pairs of one entry of a feed_dict. TypeError or ValueError for what cannot be
    fed.
    """
    if isinstance(key, (tuple, list)):
        if not isinstance(value, (tuple, list)) or len(value) != len(key):
            raise ValueError(
                f"Structure of the feed_dict key {key!r} does not match that of its value {value!r}."
            )
        return [pair for k, v in zip(key, value) for pair in feed_elements(graph, k, v)]
    if isinstance(key, SparseTensor):
        if isinstance(value, SparseTensorValue) or hasattr(value, "dense_shape"):
            value = (value.indices, value.values, value.dense_shape)
        return [pair for k, v in zip((key.indices, key.values, key.dense_shape), value) for pair in [(k, v)]]
    if isinstance(key, IndexedSlices):
        parts = [(key.values, value[0]), (key.indices, value[1])]
        if key.dense_shape is not None:
            parts.append((key.dense_shape, value[2]))
        return parts
    if isinstance(key, Ragged):
        return key._fed(value)
    conversion = conversion_of(key)
    if conversion is not None:
        if conversion.feed is None:
            raise TypeError(f"A {type(key).__name__} cannot be fed: no function that feeds it is registered.")
        parts = conversion.feed(key, value)
        return [pair for part, item in parts for pair in feed_elements(graph, part, item)]
    try:
        tensor = graph.as_graph_element(key, allow_tensor=True, allow_operation=False)
    except Exception as error:
        text = error.args[0] if error.args else error
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor} may not be fed.")
    return [(tensor, value)]


class OtherShape(Exception):
    """A fed value has another shape than the one that a plan was made for."""


def feed_converter(
    tensor: Tensor, device: torch.device, only_dims: tuple[int | None, ...] | None = None
) -> Callable[[Any], Any]:
    """The function that checks a user's value for `tensor` and converts it to a runtime value.

    `only_dims`: the shape that the plan is for; a value of another one raises `OtherShape`. It raises
    TypeError for a value that is a tensor of the graph or that the type cannot hold, ValueError for one of
    another shape or that is not convertible.
    """
    dtype = tensor.dtype.base_dtype
    if dtype.torch is None and dtype is not dtypes.string:
        return lambda value: value
    dims, wanted = tensor.dims if only_dims is None else only_dims, np.dtype(dtype.as_numpy_dtype)
    plain = dtype.torch is not None and dtype is not dtypes.bfloat16 and not dtype.is_quantized
    from_numpy, array_type, tensor_type = torch.from_numpy, np.ndarray, torch.Tensor
    is_cpu = device.type == "cpu"
    move = to_device(device)
    are_rows = dtype.is_integer and (dims is None or len(dims) == 2)  # of indices
    known: tuple[Any, Any] = (None, None)  # the last tuple of numbers, which nobody can change, as an array

    def checked(value: Any) -> Any:
        if value.shape != dims and not is_compatible(value.shape, dims):
            if only_dims is not None:
                raise OtherShape
            raise ValueError(
                f"Cannot feed value of shape {tuple(value.shape)} for Tensor {tensor.name!r}, which has "
                f"shape '{tensor.shape!s}'"
            )
        return value

    def convert(value: Any) -> Any:
        nonlocal known
        if type(value) is not array_type or value.dtype is not wanted:
            if type(value) is tensor_type and value.dtype is dtype.torch:
                return move(checked(value).detach())
            given, (before, array) = value, known
            value = array if given is before is not None else _as_feed_array(given, tensor, wanted)
            if type(given) is tuple and given is not before and all([type(x) is int for x in given]):
                known = given, value
        checked(value)
        if are_rows and not value.flags.c_contiguous:  # as of `np.argwhere`; each reader of rows would copy
            value = value.copy()
        if plain and is_cpu:
            try:
                return from_numpy(value)
            except (ValueError, TypeError):  # negative strides, foreign byte order
                pass
        result = to_runtime(value, dtype)
        return result if is_cpu else move(result)

    return convert


def feed_arrays(feeds: Sequence[Tensor]) -> Callable[[Sequence[Any]], list[Any]]:
    """The function that converts users' values for these feeds to arrays, so that their shapes are known;
    torch's tensors of the right type, and values of types without arrays (handles), stay as they are. It
    raises what `feed_converter` does.
    """
    kinds = [tensor.dtype.base_dtype.torch for tensor in feeds]
    wanted = [
        np.dtype(dtype.as_numpy_dtype) if dtype.torch is not None or dtype is dtypes.string else None
        for dtype in [tensor.dtype.base_dtype for tensor in feeds]
    ]

    def convert(values: Sequence[Any]) -> list[Any]:
        return [
            value
            if type(value) is np.ndarray
            or dtype is None
            or (type(value) is torch.Tensor and value.dtype is kind)
            else _as_feed_array(value, tensor, dtype)
            for value, tensor, dtype, kind in zip(values, feeds, wanted, kinds)
        ]

    return convert


def _as_feed_array(value: Any, tensor: Tensor, wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if hasattr(value, "_as_feed_value"):  # a handle stands for the tensor that the session keeps
        kept: np.ndarray[Any, Any] = value._as_feed_value(tensor.dtype.base_dtype)
        return kept
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python "
            "scalars, "
            f"strings, lists, or numpy ndarrays. For reference, the tensor object was {value!r} which was "
            "passed to "
            f"the feed with key {tensor!r}."
        )
    if tensor.dtype.base_dtype is dtypes.string:
        return as_bytes_array(np.asarray(value, dtype=object) if isinstance(value, (list, tuple)) else value)
    if type(value) is int and wanted.kind in "iub":
        least, most = (0, 1) if wanted.kind == "b" else (np.iinfo(wanted).min, np.iinfo(wanted).max)
        if not least <= value <= most:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{wanted}. Try explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
            )
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=wanted)
