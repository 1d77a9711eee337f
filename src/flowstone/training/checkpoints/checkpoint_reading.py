"""Looking into checkpoints without a graph, and initial values for variables from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.checkpoint_files.checkpoints import open_checkpoint
from flowstone.io.file_system import as_path, is_directory
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variable_store import store_of
from flowstone.ops.variables.variables import Variable
from flowstone.training.checkpoints.checkpoint_state import latest_checkpoint

__all__ = [
    "CheckpointReader",
    "NewCheckpointReader",
    "checkpoints_iterator",
    "init_from_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]


class CheckpointReader:
    """The tensors of a checkpoint, of either format. Made by `NewCheckpointReader`."""

    def __init__(self, filename: Any) -> None:
        self._reader = open_checkpoint(filename)

    def debug_string(self) -> bytes:
        """A line for each tensor: its name, type and shape."""
        type_name = messages("types_pb2").DataType.Name
        lines = []
        for name in self._reader.names():
            entry = self._reader.entry(name)
            sizes = ",".join(map(str, entry.shape))
            lines.append(f"{name} ({type_name(entry.dtype.as_datatype_enum)}) [{sizes}]\n")
        return "".join(lines).encode()

    def get_tensor(self, tensor_str: Any) -> Any:
        """The values of a tensor, as an array (a scalar as NumPy's scalar). NotFoundError if there is none of
        this name."""
        array = self._reader.read(_text(tensor_str))
        return array if array.ndim else array[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all tensors by their names."""
        return {name: list(self._reader.entry(name).shape) for name in self._reader.names()}

    def get_variable_to_dtype_map(self) -> dict[str, dtypes.DType]:
        """The types of all tensors by their names."""
        return {name: self._reader.entry(name).dtype for name in self._reader.names()}

    def has_tensor(self, tensor_str: Any) -> bool:
        """Whether there is a tensor of this name."""
        return _text(tensor_str) in self._reader


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else name


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:
    """A reader of the checkpoint with this prefix. NotFoundError if there is none, DataLossError for one that
    is damaged."""
    return CheckpointReader(as_path(filepattern))


def _prefix_of(ckpt_dir_or_file: Any) -> str:
    path = as_path(ckpt_dir_or_file)
    if not is_directory(path):
        return path
    found = latest_checkpoint(path)
    if found is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
    return found


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one of a folder. ValueError if that has none."""
    return NewCheckpointReader(_prefix_of(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The values of a variable in a checkpoint, or in the latest one of a folder, as an array."""
    name = name[:-2] if name.endswith(":0") else name
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """(name, shape) of all variables in a checkpoint, or in the latest one of a folder, by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The latest checkpoint of a folder, again and again as new ones come.

    `min_interval_secs`: the least time between two. `timeout`: how many seconds to wait for a new one, None
    for ever; then `timeout_fn` is asked whether to end, and without it the iterator ends.
    """
    last: str | None = None
    while True:
        found = _wait_for_new(checkpoint_dir, last, timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        began, last = time.time(), found
        yield found
        time.sleep(max(0.0, began + min_interval_secs - time.time()))


def _wait_for_new(folder: Any, last: str | None, timeout: float | None) -> str | None:
    deadline = None if timeout is None else time.time() + timeout
    while True:
        found = latest_checkpoint(folder)
        if found is not None and found != last:
            return found
        if deadline is not None and time.time() + 1 > deadline:
            return None
        time.sleep(1)


# ---- initial values


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Makes the initialisers of variables read a checkpoint; nothing runs now.

    `ckpt_dir_or_file`: a checkpoint, or a folder, whose latest one is used. `assignment_map`: a dict or pairs

    - ``"scope/in/checkpoint/": "scope/"``: all variables in the scope, by the names behind it;
    - ``"name": "name"``, a variable, or the list of a partitioned variable's parts.

    ValueError for names that are not there and shapes that differ.
    """
    prefix = _prefix_of(ckpt_dir_or_file)
    reader = load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    for name, current in sorted(pairs, key=lambda pair: str(pair[0])):
        for tensor_name, variable in _assigned(name, current, shapes, prefix):
            _initialise(prefix, tensor_name, variable, shapes)


def _known_variables() -> dict[str, Any]:
    """The variables of `get_variable`, by name; a partitioned one as one."""
    return store_of(get_default_graph()).by_name()


def _assigned(name: str, current: Any, shapes: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    known = None
    if isinstance(current, str) and not current.endswith("/"):
        known = _known_variables()
        if current not in known:
            raise ValueError(f"Variable {current} is not found in the graph to be initialised from {prefix}")
        current = known[current]
    if isinstance(current, (Variable, PartitionedVariable, list, tuple)):
        if name not in shapes:
            raise ValueError(f"Tensor {name} is not found in {prefix} checkpoint {dict(shapes)}")
        return [(name, current)]
    if not name.endswith("/"):
        raise ValueError(f"Assignment map with scope only name {current} should map to scope only {name}. "
                         "Should be 'scope/': 'other_scope/'.")  # fmt: skip
    return _assigned_scope(name, current, shapes, prefix)


def _assigned_scope(name: str, scope: str, shapes: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    """What a scope of the checkpoint gives the variables of a scope of the graph."""
    inside, outside = scope[:-1], name[:-1]
    found = []
    for variable_name, variable in _known_variables().items():
        if inside and not variable_name.startswith(inside + "/"):
            continue
        rest = variable_name[len(inside) + 1 :] if inside else variable_name
        full = f"{outside}/{rest}" if outside else rest
        if full not in shapes:
            raise ValueError(f"Tensor {full} ({rest} in {scope}) is not found in {prefix} checkpoint")
        found.append((full, variable))
    return found


def _initialise(prefix: str, tensor_name: str, variable: Any, shapes: Mapping[str, Any]) -> None:
    if isinstance(variable, (PartitionedVariable, list, tuple)):
        parts = list(variable)
        specs = [part._save_slice_info.spec if part._save_slice_info else "" for part in parts]
        shape = parts[0]._save_slice_info.full_shape if parts[0]._save_slice_info else None
    else:
        parts, specs, shape = [variable], [""], variable.shape.as_list()
    if shape is not None and not TensorShape(shape).is_compatible_with(shapes[tensor_name]):
        raise ValueError(
            f"Shape of variable {parts[0].op.name} ({TensorShape(shape)}) doesn't match with shape of tensor "
            f"{tensor_name} ({shapes[tensor_name]}) from checkpoint reader."
        )
    for part, spec in zip(parts, specs):
        _set_initial_value(part, prefix, tensor_name, spec)
    logging.debug(f"Initialize variable {parts[0].op.name} from checkpoint {prefix} with {tensor_name}")


def _set_initial_value(variable: Any, prefix: str, tensor_name: str, spec: str) -> None:
    graph, dtype = get_default_graph(), variable.dtype.base_dtype
    with graph.device(variable.device), graph.device("/cpu:0"):
        restored: Any = F.RestoreV2(
            prefix, [tensor_name], [spec], dtypes=[dtype], name="checkpoint_initializer"
        )
    restored[0].set_shape(variable.shape)
    variable._initialise_with(restored[0])
