"""`tf.train.warm_start`: variables that begin with values of a checkpoint, also where vocabularies differ."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.io.file_system import read_bytes
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variables import Variable
from flowstone.training.checkpoints.checkpoint_reading import init_from_checkpoint, load_checkpoint

__all__ = ["VocabInfo", "warm_start"]

_Fields = namedtuple(
    "_Fields",
    [
        "new_vocab",
        "new_vocab_size",
        "num_oov_buckets",
        "old_vocab",
        "old_vocab_size",
        "backup_initializer",
        "axis",
    ],
)


class VocabInfo(_Fields):
    """What the rows (axis 0) or columns (axis 1) of a variable stood for, and stand for now.

    `new_vocab`, `old_vocab`: paths of files with an entry a line, of which the first `new_vocab_size` and
    `old_vocab_size` (-1: all) count; `num_oov_buckets`: rows behind those of the new vocabulary. What the old
    vocabulary has not begins as `backup_initializer` says, or with zeros.
    """

    __slots__ = ()

    def __new__(
        cls, new_vocab: Any, new_vocab_size: int, num_oov_buckets: int, old_vocab: Any,
        old_vocab_size: int = -1, backup_initializer: Any = None, axis: int = 0,
    ) -> VocabInfo:  # fmt: skip
        if axis not in (0, 1):
            raise ValueError(
                f"The only supported values for the axis argument are 0 and 1.  Provided axis: {axis}"
            )
        return super().__new__(
            cls,
            new_vocab,
            new_vocab_size,
            num_oov_buckets,
            old_vocab,
            old_vocab_size,
            backup_initializer,
            axis,
        )


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes the initialisers of variables read a checkpoint, or the latest one of a folder; nothing runs now.

    Args:
        ckpt_to_initialize_from: the checkpoint or folder.
        vars_to_warm_start: a regular expression that trainable variables' names begin with; a list of them,
            or of names, for all global variables; a list of variables; None for those with vocabularies only.
        var_name_to_vocab_info: VocabInfos by variables' names.
        var_name_to_prev_var_name: names in the checkpoint, where they are others.

    Raises ValueError for names that the checkpoint has not, shapes that differ, or vocabularies of variables
    that are not warm-started, or for a list of other things.
    """
    infos, names = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    groups = _groups(vars_to_warm_start)
    if vars_to_warm_start is None:
        by_name = _grouped(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
        groups = {name: by_name[name] for name in infos if name in by_name}
    unknown = [name for name in (*infos, *names) if name not in groups]
    if unknown:
        raise ValueError(
            f"These variables have a vocabulary or an earlier name but are not warm-started: {unknown}"
        )
    plain = {}
    for name, parts in groups.items():
        earlier = names.get(name, name)
        if name in infos:
            _start_with_vocabulary(parts, earlier, infos[name], ckpt_to_initialize_from)
        else:
            plain[earlier] = parts[0] if len(parts) == 1 else parts
    init_from_checkpoint(ckpt_to_initialize_from, plain)
    logging.info(f"Warm-started {len(groups)} variables, {len(infos)} of them with vocabularies")


def _groups(wanted: Any) -> dict[str, list[Any]]:
    """The variables to start, parts of one together, by name."""
    graph = get_default_graph()
    if wanted is None:
        return {}
    if isinstance(wanted, str):
        return _grouped(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, wanted))
    if not isinstance(wanted, list):
        raise ValueError(f"vars_to_warm_start must be a list or str, not {type(wanted).__name__}")
    if all(isinstance(each, str) for each in wanted):
        return _grouped(
            [v for name in wanted for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, name)]
        )
    if not all(isinstance(each, (Variable, PartitionedVariable)) for each in wanted):
        types = ", ".join(type(each).__name__ for each in wanted)
        raise ValueError(f"vars_to_warm_start must be all variables or all str, not {types}")
    found = []
    for each in wanted:
        found += list(each) if isinstance(each, PartitionedVariable) else [each]
    return _grouped(found)


def _grouped(variables: list[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for each in dict.fromkeys(variables):
        info = each._save_slice_info
        groups.setdefault(info.full_name if info else each.op.name, []).append(each)
    return groups


def _entries(path: Any, size: int) -> list[bytes]:
    lines = re.split(rb"\r?\n", read_bytes(path))
    lines = lines[:-1] if lines and not lines[-1] else lines
    if size > len(lines):
        raise ValueError(f"{path} has {len(lines)} entries, not {size}")
    return lines if size < 0 else lines[:size]


def _start_with_vocabulary(parts: list[Any], earlier: str, info: VocabInfo, checkpoint: Any) -> None:
    """Each part begins with the rows or columns that the old vocabulary has, the others as is given."""
    old = np.asarray(load_checkpoint(checkpoint).get_tensor(earlier))
    places = {entry: i for i, entry in enumerate(_entries(info.old_vocab, info.old_vocab_size))}
    wanted = [places.get(entry, -1) for entry in _entries(info.new_vocab, info.new_vocab_size)]
    index = np.array(wanted + [-1] * info.num_oov_buckets, np.int64)
    values = np.where(
        _along(index, old.ndim, info.axis) >= 0, np.take(old, index, info.axis), old.dtype.type(0)
    )
    for part in parts:
        slices = part._save_slice_info
        begin = slices.var_offset if slices else [0] * values.ndim
        sizes = part.shape.as_list()
        cut = tuple(slice(b, b + n) for b, n in zip(begin, sizes))
        if list(values[cut].shape) != sizes:
            raise ValueError(f"{part.op.name} has shape {sizes}, the vocabularies give {list(values.shape)}")
        own = index[cut[info.axis]]
        part._initialise_with(_initial(part, values[cut], own, info))


def _along(index: Any, rank: int, axis: int) -> Any:
    return index.reshape([-1 if i == axis else 1 for i in range(rank)])


def _initial(part: Any, values: Any, index: Any, info: VocabInfo) -> Any:
    with get_default_graph().name_scope("warm_start"):
        loaded = convert_to_tensor(values.astype(part.dtype.as_numpy_dtype), name="loaded")
        if info.backup_initializer is None or bool((index >= 0).all()):
            return loaded
        other = info.backup_initializer(part.shape.as_list(), dtype=part.dtype.base_dtype)
        return F.SelectV2(_along(index, values.ndim, info.axis) >= 0, loaded, other)
