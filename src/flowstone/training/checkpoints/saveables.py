"""What a Saver saves: the `SaveableObject`s of variables, of their parts, and of what brings its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.resource_variable import ResourceVariable
from flowstone.ops.variables.variables import Variable

__all__ = ["SaveSpec", "SaveableObject", "saveables_of"]


class VariableSaveable(SaveableObject):
    """A variable with a reference, or any tensor with one; `value` is what is saved."""

    def __init__(self, variable: Any, value: Any, slice_spec: str, name: str) -> None:
        self._variable = variable
        super().__init__(variable, [SaveSpec(value, slice_spec, name)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """Assigns the tensor."""
        (value,) = restored_tensors
        if restored_shapes is not None:
            value = F.Reshape(value, restored_shapes[0])
        shape = self._variable.shape
        validates = restored_shapes is None and shape.is_fully_defined()
        return F.Assign(self._variable, value, validate_shape=validates)


class ResourceVariableSaveable(SaveableObject):
    """A resource variable."""

    def __init__(self, variable: Any, slice_spec: str, name: str) -> None:
        self._handle, self._shape = variable.handle, variable.shape
        value = variable.value() if variable._snapshot is None else variable._snapshot
        super().__init__(variable.handle, [SaveSpec(value, slice_spec, name)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """Assigns the tensor."""
        (value,) = restored_tensors
        if restored_shapes is not None:
            value = F.Reshape(value, restored_shapes[0])
        value = F.Identity(value)
        if value.shape.is_fully_defined() or restored_shapes is None:
            value.shape.assert_is_compatible_with(self._shape)
        return F.AssignVariableOp.operation(self._handle, value)


# ---- from what a user gives


def _is_variable(value: Any) -> bool:
    return isinstance(value, Variable)


def by_name(var_list: Any) -> dict[str, Any]:
    """The variables, lists of parts, and SaveableObjects by the names that they have in checkpoints.

    `var_list`: such things, or a dict of them by name. TypeError for others, ValueError for a name twice.
    """
    if isinstance(var_list, Mapping):
        for name in var_list:
            if not isinstance(name, str):
                raise TypeError(f"The names of variables to save must be strings, not {name!r}")
        return dict(var_list)
    if not isinstance(var_list, (list, tuple, set)):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {var_list}")
    found: dict[str, Any] = {}
    for each in var_list:
        if isinstance(each, SaveableObject):
            found[each.name] = each
        elif isinstance(each, PartitionedVariable):
            _add_once(found, each.name, list(each))
        elif _is_variable(each) and each._save_slice_info is not None:
            parts = found.setdefault(each._save_slice_info.full_name, [])
            if not isinstance(parts, list):
                raise ValueError(
                    f"Mixing slices and non-slices with the same name: {each._save_slice_info.full_name}"
                )
            parts.append(each)
        else:
            _add_once(found, _name_of(each), each)
    return found


def _add_once(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise ValueError(f"At least two variables have the same name: {name}")
    found[name] = value


def _name_of(value: Any) -> str:
    if _is_variable(value):
        return str(value.op.name)
    tensor = convert_to_tensor(value, as_ref=True)
    if not _has_reference(tensor):
        raise TypeError(f"Variable to save is not a Variable: {value}")
    return str(tensor.op.name)


def _has_reference(tensor: Tensor) -> bool:
    return tensor.dtype.is_ref and tensor.op.declaration.role == "variable"


def saveables_of(var_list: Any) -> list[SaveableObject]:
    """The SaveableObjects of what `by_name` takes, in the order of their names.

    ValueError for one thing under two names, TypeError for what cannot be saved.
    """
    named = by_name(var_list)
    saveables: list[SaveableObject] = []
    seen: set[Any] = set()
    for name in sorted(named):
        for saveable in _of(named[name], name):
            if saveable.op in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(saveable.op)
            saveables.append(saveable)
    return saveables


def _of(value: Any, name: str) -> Iterable[SaveableObject]:
    if isinstance(value, SaveableObject):
        return [value]
    if isinstance(value, (list, tuple, PartitionedVariable)):
        return [*_of_parts(value, name)]
    if hasattr(value, "_saveable"):  # it has parts on several devices
        return [value._saveable(name)]
    if isinstance(value, ResourceVariable):
        return [ResourceVariableSaveable(value, "", name)]
    if _is_variable(value):
        return [VariableSaveable(value._ref(), value._ref(), "", name)]
    tensor = convert_to_tensor(value, as_ref=True)
    if not _has_reference(tensor):
        raise TypeError(f"names_to_saveables must be a dict mapping string names to Tensors/Variables. "
                        f"Not a variable: {value}")  # fmt: skip
    return [VariableSaveable(tensor, tensor, "", name)]


def _of_parts(parts: Iterable[Any], name: str) -> Iterator[SaveableObject]:
    """The parts of one tensor, whose name in checkpoints need not be the graph's."""
    whole: str | None = None
    for part in parts:
        info = part._save_slice_info if _is_variable(part) else None
        if info is None:
            raise ValueError(f"Slices must all be Variables with information on their place: {part}")
        if whole is not None and info.full_name != whole:
            raise ValueError(f"Slices must all be from the same tensor: {whole} != {info.full_name}")
        whole = info.full_name
        yield _of_part(part, info, name)


def _of_part(part: Any, info: Any, name: str) -> SaveableObject:
    if isinstance(part, ResourceVariable):
        return ResourceVariableSaveable(part, info.spec, name)
    return VariableSaveable(part._ref(), part._snapshot, info.spec, name)
