"""Arguments of a call of a traced function: which are tensors, and which calls share a trace.

Tensors, NumPy arrays and the parts of composite values (`tf.SparseTensor` …) are arguments of the graph's
function, of which a trace knows type and static shape. Everything else is Python's: its value is part of the
trace. With an `input_signature` all arguments are tensors, and there is one trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.shallow_nest import flatten_up_to
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.tensors.type_specs import TensorSpec

__all__ = ["Signature", "flat_tensors", "is_tensor", "kind_of", "with_leaves"]


class Signature:
    """How a Python function is called: its `parameters`, as far as Python knows them, and the TensorSpecs
    `specs` of the `input_signature` if there is one."""

    def __init__(self, function: Callable[..., Any], specs: Any) -> None:
        if specs is not None:
            if not isinstance(specs, (tuple, list)):
                raise TypeError(f"input_signature must be either a tuple or a list, received {type(specs)}")
            if not all(isinstance(leaf, TensorSpec) for leaf in nest.flatten(specs)):
                raise TypeError(
                    f"Invalid input_signature {specs}; input_signature must be a possibly nested sequence of "
                    "TensorSpec objects."
                )
        self._function, self.specs = function, None if specs is None else tuple(specs)
        try:
            self.parameters: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # of a builtin
            self.parameters = None

    def bound(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as positions and names, defaults filled in. TypeError as Python's for a wrong
        call.
        """
        if self.parameters is None:
            return args, dict(kwargs)
        try:
            found = self.parameters.bind(*args, **kwargs)
        except TypeError:
            self._function(*args, **kwargs)  # raises Python's own error
            raise
        if self.specs is None:
            found.apply_defaults()
        return found.args, found.kwargs

    def fitted(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments as tensors of the `input_signature`. TypeError for another number, ValueError for
        others."""
        specs = self.specs or ()
        if kwargs or len(args) > len(specs):
            raise TypeError(
                "When input_signature is provided, only pass arguments covered by it. Received "
                f"{len(args) + len(kwargs)} argument(s)."
            )
        if len(args) < len(specs):
            raise TypeError(f"The input_signature names {len(specs)} arguments, but got {len(args)}.")
        try:
            parts = flatten_up_to(specs, args, check_types=False)
        except (TypeError, ValueError):
            raise ValueError("Structure of Python function inputs does not match input_signature.") from None
        leaves = [_as_given(leaf, spec) for leaf, spec in zip(parts, nest.flatten(specs))]
        if not all(spec.is_compatible_with(x) for spec, x in zip(nest.flatten(specs), leaves)):
            raise ValueError(
                "Python inputs incompatible with input_signature:\n  inputs: (\n"
                + ",\n".join(f"    {leaf}" for leaf in parts)
                + ")\n  input_signature: (\n"
                + ",\n".join(f"    {spec!r}" for spec in nest.flatten(specs))
                + ")"
            )
        return tuple(nest.pack_sequence_as(list(specs), leaves))


def _as_given(value: Any, spec: TensorSpec) -> Any:
    """The value as a tensor, of the spec's type unless it has one."""
    if isinstance(value, (Tensor, TensorSpec)):
        return value
    try:
        return convert_to_tensor(value, None if isinstance(value, np.ndarray) else spec.dtype)
    except (TypeError, ValueError):
        return convert_to_tensor(value)


def is_tensor(value: Any) -> bool:
    """Whether a leaf becomes an argument of the graph's function."""
    return isinstance(value, (Tensor, TensorSpec, np.ndarray))


def kind_of(value: Any) -> Any:
    """What a trace depends on: types and static shapes of tensors, anything else itself.

    TypeError for a value of Python's that cannot be hashed.
    """
    if isinstance(value, (Tensor, TensorSpec)):
        shape = value.shape
        return "tensor", value.dtype.base_dtype, None if shape.ndims is None else tuple(shape.as_list())
    if isinstance(value, np.ndarray):
        return "tensor", convert_to_tensor(value[:0] if value.ndim else value).dtype, value.shape
    if nest.is_composite(value):
        return type(value), tuple(kind_of(part) for part in nest.components(value))
    if isinstance(value, Mapping):
        return type(value), tuple((key, kind_of(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return type(value), tuple(kind_of(item) for item in value)
    hash(value)
    return type(value), value


def flat_tensors(structure: Any) -> list[Any]:
    """The leaves that are tensors, in order."""
    return [leaf for leaf in nest.flatten(structure, expand_composites=True) if is_tensor(leaf)]


def with_leaves(structure: Any, replacements: Sequence[Any]) -> Any:
    """The structure with its tensors replaced, in order."""
    given = iter(replacements)
    leaves = nest.flatten(structure, expand_composites=True)
    return nest.pack_sequence_as(
        structure, [next(given) if is_tensor(leaf) else leaf for leaf in leaves], expand_composites=True
    )
