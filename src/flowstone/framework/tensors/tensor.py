"""`Tensor`, the user's handle of an operation's output, and the conversion of Python values to tensors.

Arithmetic is not defined here: `flowstone.ops` installs the operators with `Tensor.overload`, and conversions
of numbers, arrays, variables … with `register_tensor_conversion_function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from flowstone.framework import errors
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.node import UNKNOWN, Output
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape, merge

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Graph, Operation


class _NoLengthError(AttributeError, TypeError):
    """What `len(tensor)` raises: a TypeError; an AttributeError as well, of which `hasattr` makes False."""


class _NoLength:
    """`Tensor.__len__`, which TensorFlow got in 1.15 to refuse with it.

    Libraries before that ask `hasattr(x, "__len__")` for whether x is a list of tensors.
    """

    def __get__(self, tensor: Any, kind: type) -> Any:
        name = "" if tensor is None else f" {tensor.name}"
        raise _NoLengthError(f"len is not well defined for the symbolic Tensor{name}; use tf.shape(x)[0].")


class Tensor(Output):
    """One output of an `Operation`: a value that a step computes. It holds no value itself.

    Compares and hashes by identity. Iteration and truth value raise OperatorNotAllowedInGraphError, a
    TypeError, since the value is not known yet.
    """

    __slots__ = ("__dict__", "__weakref__", "_consumers", "_extra")  # libraries note things on tensors
    op: Operation
    __array_priority__ = 100  # NumPy leaves binary operators to us
    OVERLOADABLE_OPERATORS: ClassVar[set[str]] = set()  # those that it has, for classes that hand them on

    def __init__(
        self, op: Operation, value_index: int, dtype: DType, dims: tuple[int | None, ...] | None = None
    ) -> None:
        self.op, self.value_index, self.dtype, self.dims = op, value_index, dtype, dims
        self._static_value = UNKNOWN
        self._consumers: list[Operation] = []

    _extra: Any  # what a family notes of it, such as the variable that it is a part of

    if TYPE_CHECKING:  # `flowstone.ops` installs them

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __div__(self, other: Any) -> Tensor: ...
        def __rdiv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...

    @staticmethod
    def overload(name: str, function: Callable[..., Any]) -> None:
        """Installs an operator (``__add__`` …) or method; used by the room that defines the operation."""
        setattr(Tensor, name, function)
        if name.startswith("__"):
            Tensor.OVERLOADABLE_OPERATORS.add(name)

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device requested for the operation that computes it."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.from_dims(self.dims)

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.from_dims(self.dims)

    @property
    def _shape(self) -> TensorShape:
        """The static shape, for libraries that read this attribute."""
        return self.shape

    @_shape.setter
    def _shape(self, value: Any) -> None:
        raise ValueError("Tensor._shape cannot be assigned, use Tensor.set_shape instead.")

    def set_shape(self, shape: Any) -> None:
        """Merges what the user knows of the shape into the static shape. ValueError if they contradict."""
        self.dims = merge(self.dims, as_shape(shape).dims_tuple)

    @property
    def ndim(self) -> int | None:
        """The static rank, or None."""
        return None if self.dims is None else len(self.dims)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(dict.fromkeys(self._consumers))

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Runs the tensor in `session` (default: the default session) and returns its value.

        Raises ValueError if there is no session or it belongs to another graph.
        """
        return evaluating_session(session, self.graph, "eval").run(self, feed_dict)

    def _as_tf_output(self) -> Tensor:  # libraries hand it to TensorFlow's own functions
        return self

    def _as_graph_element(self) -> Tensor:
        return self

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self.dims is None else f", shape={self.shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name}{device})'

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __copy__(self) -> Tensor:
        return self

    def __iter__(self) -> Any:
        raise errors.OperatorNotAllowedInGraphError(
            "Tensor objects are only iterable when their values are known: use tf.unstack or tf.map_fn."
        )

    __len__ = _NoLength()

    def __bool__(self) -> bool:
        raise errors.OperatorNotAllowedInGraphError(
            f"Using the symbolic Tensor {self.name} as a Python `bool` is not allowed: its value is not "
            "known before a step. Use `if t is not None:` to ask whether a tensor is defined, and tf.cond to "
            "branch on its value."
        )

    __nonzero__ = __bool__

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(  # TensorFlow's class for this mistake
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array."
        )


def evaluating_session(session: Any, graph: Graph, what: str) -> Any:
    """The session for `tensor.eval` and `operation.run`: the given one or the default. ValueError if there is
    none.
    """
    if session is None:
        session = scope.get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what} without a session: pass session=..., or make one the default with "
                "`with tf.Session():` or `with session.as_default():`"
            )
    if session.graph is not graph:
        raise ValueError(f"Cannot use the given session to {what}: it belongs to another graph.")
    return session


# ---- conversion

_conversions: list[tuple[int, Any, Callable[..., Any]]] = []
_conversion_cache: dict[type, list[Callable[..., Any]]] = {}


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Has `convert_to_tensor` call ``conversion_func(value, dtype, name, as_ref)`` for instances of
    `base_type`.

    Lower priorities come first; among equals, earlier registrations. The function may return NotImplemented.
    Raises TypeError for a base that is no type (or tuple of types) or a function that is not callable.
    """
    bases = base_type if isinstance(base_type, tuple) else (base_type,)
    if not bases or not all(isinstance(base, type) for base in bases):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _conversions.append((priority, base_type, conversion_func))
    _conversions.sort(key=lambda entry: entry[0])
    _conversion_cache.clear()


def _functions_for(kind: type) -> list[Callable[..., Any]]:
    found = _conversion_cache.get(kind)
    if found is None:
        found = [function for _, base, function in _conversions if issubclass(kind, base)]
        _conversion_cache[kind] = found
    return found


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    as_ref: bool = False,
    dtype_hint: Any = None,
) -> Tensor:
    """A tensor for `value`: itself if it is one, else by the registered conversions.

    `preferred_dtype`, or `dtype_hint`: the dtype if `value` converts to it and `dtype` does not say another.

    Raises ValueError if it is a tensor of another dtype, TypeError if nothing converts it (to that dtype).
    """
    if isinstance(value, Tensor):
        if scope.functions_in_construction and not as_ref:
            value = _captured(value)
        return value if dtype is None else _with_dtype(value, dtypes.as_dtype(dtype))
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    preferred_dtype = dtype_hint if preferred_dtype is None else preferred_dtype
    for function in _functions_for(type(value)):
        result: Any = NotImplemented
        if dtype is None and preferred_dtype is not None:
            try:
                result = function(value, dtype=preferred_dtype, name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                result = NotImplemented
            else:
                if (
                    result is not NotImplemented
                    and result.dtype.base_dtype != dtypes.as_dtype(preferred_dtype).base_dtype
                ):
                    raise TypeError(
                        f"convert_to_tensor did not convert to the preferred dtype: {result.dtype.name} vs "
                        f"{dtypes.as_dtype(preferred_dtype).name}"
                    )
        if result is NotImplemented:
            result = function(value, dtype=dtype, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"Conversion function {function!r} for type {type(value)} returned non-Tensor: {result!r}"
            )
        if dtype is not None and not dtype.base_dtype.is_compatible_with(result.dtype.base_dtype):
            raise RuntimeError(
                f"Conversion function {function!r} for type {type(value)} returned incompatible dtype: "
                f"requested = {dtype.base_dtype.name}, actual = {result.dtype.name}"
            )
        tensor: Tensor = result
        return tensor
    raise TypeError(
        f"Cannot convert {value!r} with type {type(value)} to Tensor: no conversion function registered."
    )


def _captured(tensor: Tensor) -> Tensor:
    """What stands for a tensor in the function that is being built, if one is."""
    graph = scope.graphs.get()
    if graph is None or not graph.building_function or tensor.graph is graph:
        return tensor
    return graph.capture(tensor)  # type: ignore[no-any-return]


def _with_dtype(tensor: Tensor, dtype: DType) -> Tensor:
    if tensor.dtype is dtype or tensor.dtype.base_dtype is dtype.base_dtype:
        return tensor
    raise ValueError(
        f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {tensor.dtype.name}: "
        f"{tensor!r}"
    )
