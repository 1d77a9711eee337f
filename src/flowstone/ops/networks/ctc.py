"""The loss of connectionist temporal classification: labels without their places in time.

Logits are [time, batch, classes], the labels of each row a sparse matrix [batch, …], and every row has its
own number of time steps. The last class is the blank of CTCLoss, the first that of CTCLossV2. A label that
is not below the last class ends its row's labels. The losses of labels that no path can mean are infinite.
Both operations compute the gradient along with the loss. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.ctc_alignments import merged, unmerged
from flowstone.ops.networks.windows import require_rank

__all__ = ["ctc_loss", "ctc_loss_v2", "ctc_unique_labels"]

_INPUTS = "labels_indices: int64, labels_values: int32, sequence_length: int32"
_ATTRIBUTES = (
    "preprocess_collapse_repeated: bool = false ; ctc_merge_repeated: bool = true ; "
    "ignore_longer_outputs_than_inputs: bool = false"
)
_HOST = ("labels_indices", "labels_values", "sequence_length")

ctc_loss_op = op(
    "CTCLoss",
    f"inputs: T, {_INPUTS} -> loss: T, gradient: T",
    _ATTRIBUTES + " ; T: type in [float32, float64] = float32",
    host=_HOST,
    capturable=False,
    starts_team=True,
)
ctc_loss_v2_op = op(
    "CTCLossV2",
    f"inputs: float32, {_INPUTS} -> loss: float32, gradient: float32",
    _ATTRIBUTES,
    host=_HOST,
    capturable=False,
    starts_team=True,
)


def _cost(node: Node) -> float:
    """A soft-max of all logits, and three sums a state and time step, forwards and backwards."""
    steps, rows, classes = (size or 32 for size in node.dims(0) or (32, 32, 32))
    labels = (node.dims(2) or (None,))[0] or 8 * rows
    return float(steps * (12 * rows * classes + 80 * labels))


def _infer(node: Node) -> Shapes:
    logits = require_rank(node.dims(0), 3)
    require_rank(node.dims(1), 2)
    places, values, lengths = node.dims(1), require_rank(node.dims(2), 1), require_rank(node.dims(3), 1)
    if places is not None:
        _agreed(places[0], values[0])
    rows = _agreed(logits[1], lengths[0])
    return [(rows,), (logits[0], rows, logits[2])]


def _agreed(first: int | None, second: int | None) -> int | None:
    if None not in (first, second) and first != second:
        raise ValueError(f"Dimensions must be equal, but are {first} and {second}")
    return second if first is None else first


def _kernel(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    blank_first = node.declaration is ctc_loss_v2_op
    collapse, ignore = (
        attributes["preprocess_collapse_repeated"],
        attributes["ignore_longer_outputs_than_inputs"],
    )
    sums = merged if attributes["ctc_merge_repeated"] else unmerged

    def run(logits: torch.Tensor, places: Any, values: Any, lengths: Any) -> list[torch.Tensor]:
        places, values, lengths = places.numpy(), values.numpy(), lengths.numpy()
        _check_sizes(logits, places, values, lengths)
        rows = len(lengths)
        _check_places(places, values, rows)
        counts = np.bincount(places[:, 0], minlength=rows)
        if not blank_first and not counts.all():
            raise invalid(f"Labels length is zero in batch {int(np.argmin(counts))}")
        ignored = (counts > lengths) & (ignore or not blank_first)
        if ignored.any() and not ignore:
            row = int(np.argmax(ignored))
            raise invalid(
                f"Not enough time for target transition sequence (required: {counts[row]}, "
                f"available: {lengths[row]}). ignore_longer_outputs_than_inputs makes such losses 0."
            )
        kept = _kept(places[:, 0], values, logits.shape[2], collapse, blank_first) & ~ignored[places[:, 0]]
        targets = torch.from_numpy(values[kept].astype(np.int64)).to(logits.device)
        counts = np.bincount(places[kept, 0], minlength=rows)
        blank = 0 if blank_first else logits.shape[2] - 1
        times = np.maximum(lengths, 1)
        used = logits[: times.max()]
        losses, gradient = sums(used.log_softmax(2), targets, counts.tolist(), times.tolist(), blank)
        untimed = ignored | (lengths == 0)
        if untimed.any():
            losses[torch.from_numpy(untimed & (ignored | (counts == 0)))] = 0
            losses[torch.from_numpy(untimed & ~ignored & (counts > 0))] = math.inf
        gradient = _inside(used, losses, gradient, np.where(ignored, 0, lengths))
        if len(used) == len(logits):
            return [losses, gradient]
        whole = torch.zeros_like(logits)
        whole[: len(used)] = gradient
        return [losses, whole]

    return run


def _inside(logits: torch.Tensor, losses: torch.Tensor, gradient: torch.Tensor, lengths: Any) -> torch.Tensor:
    """The gradient: the soft-max where no path is possible, nothing behind the end of a row."""
    impossible = losses.isposinf()
    if bool(impossible.any()):
        gradient = torch.where(impossible[:, None], logits.softmax(2), gradient)
    if lengths.min() >= len(logits):
        return gradient
    ends = torch.from_numpy(lengths).to(logits.device)
    outside = torch.arange(len(logits), device=logits.device)[:, None] >= ends
    return gradient.masked_fill_(outside[:, :, None], 0)


def _check_sizes(logits: torch.Tensor, places: Any, values: Any, lengths: Any) -> None:
    if logits.dim() != 3:
        raise invalid(f"inputs is not a 3-Tensor: {list(logits.shape)}")
    if lengths.ndim != 1 or len(lengths) != logits.shape[1]:
        raise invalid(f"len(sequence_length) != batch_size. {lengths.size} vs. {logits.shape[1]}")
    if places.ndim != 2 or places.shape[1] != 2 or values.ndim != 1 or len(places) != len(values):
        raise invalid(
            f"labels_indices must be [n, 2] and labels_values [n], but they are {list(places.shape)} and "
            f"{list(values.shape)}"
        )
    if not len(lengths):
        raise invalid("batch_size must not be 0")
    if not len(logits):
        raise invalid("Max time or first dimension of input cannot be 0.")
    for row in np.flatnonzero((lengths < 0) | (lengths > len(logits)))[:1]:
        if lengths[row] < 0:
            raise invalid(f"seq_len({row}) < 0: {lengths[row]}")
        raise invalid(f"sequence_length({row}) <= {len(logits)} does not hold of {lengths[row]}")


def _check_places(places: Any, values: Any, rows: int) -> None:
    """Labels stand in row-major order, each place once, in rows that the logits have."""
    row, column = places[:, 0], places[:, 1]
    outside = (row < 0) | (row >= rows) | (column < 0)
    later = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (column[1:] > column[:-1]))
    bad = np.concatenate([outside[:1], outside[1:] | ~later])
    for i in np.flatnonzero(bad)[:1]:
        what = f"out of bounds: need 0 <= row < {rows}" if outside[i] else "out of order or repeated"
        raise invalid(f"label SparseTensor is not valid: indices[{i}] = {places[i].tolist()} is {what}")


def _kept(row: Any, values: Any, classes: int, collapse: bool, blank_first: bool) -> Any:
    """Which labels count: not those that repeat the one before, if asked, and none from a null label on."""
    null = (values >= classes) | (values == 0) if blank_first else values >= classes - 1
    same_row = row[1:] == row[:-1]
    kept = np.ones(len(values), bool)
    if collapse:
        kept[1:] &= ~(same_row & (values[1:] == values[:-1]))
    for i in np.flatnonzero(values < 0)[:1]:
        raise invalid(f"All labels must be nonnegative integers, batch: {row[i]} label: {values[i]}")
    for i in np.flatnonzero(same_row & null[:-1] & ~null[1:])[:1] + 1:
        raise invalid(
            f"Saw a non-null label (index >= num_classes - 1) following a null label, batch: {row[i]} "
            f"num_classes: {classes} label: {values[i]}"
        )
    return kept & ~null


def _gradient(op: Operation, dloss: Tensor, dgradient: Tensor | None) -> Gradients:
    computed = F.PreventGradient(
        op.outputs[1],
        message="The gradient of ctc_loss is made by the loss itself, and is not differentiated.",
    )
    return F.Mul(F.ExpandDims(dloss, -1), computed, name="mul"), None, None, None


def _declare(declaration: OpDeclaration) -> None:
    declaration.infer(_infer)
    declaration.kernel(CPU, GPU)(_kernel)
    declaration.gradient(_gradient)
    declaration.cost(_cost)


_declare(ctc_loss_op)
_declare(ctc_loss_v2_op)


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The losses, [batch], of labels that are given without their times (Graves et al., 2006).

    Args:
        labels: an int32 SparseTensor [batch, …], the labels of each row in order; none may be empty.
        inputs: logits, float32 or float64 [time, batch, classes]; the last class is the blank. `logits` is
            another name.
        sequence_length: int32 [batch], the time steps of each row.
        preprocess_collapse_repeated: whether runs of one label are first merged.
        ctc_merge_repeated: whether runs of one class in a path are one label.
        ignore_longer_outputs_than_inputs: whether rows with more labels than time steps lose nothing, rather
            than being an error.
        time_major: False if `inputs` is [batch, time, classes].

    Raises:
        TypeError: `labels` is no SparseTensor.
        InvalidArgumentError: while running: negative labels, rows without labels or out of order, more labels
            than time steps, more time steps than there are.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = logits if inputs is None else inputs
    if not time_major:
        inputs = F.Transpose(inputs, [1, 0, 2], name="transpose")
    result: Tensor = ctc_loss_op.several(
        inputs, labels.indices, labels.values, sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    ).loss  # fmt: skip
    return result


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The losses, [batch], of labels that are given without their times, of which any class may be the blank.

    Args:
        labels: int32 [batch, labels], of which `label_length` count in each row, or a SparseTensor.
        logits: float32 [time, batch, classes], or [batch, time, classes] unless `logits_time_major`.
        label_length: int32 [batch]; None with a SparseTensor.
        logit_length: int32 [batch], the time steps of each row.
        unique: the result of `ctc_unique_labels`; it makes no difference.
        blank_index: the class that is the blank, 0 unless given; negative ones count from the last. It must
            be given with a SparseTensor.

    Raises:
        ValueError: `blank_index` is missing, or not that of a class.
    """
    sparse = isinstance(labels, SparseTensor)
    if sparse and blank_index is None:
        raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
    with get_default_graph().name_scope(name or "ctc_loss_dense"):
        logits = convert_to_tensor(logits, name="logits")
        classes = None if logits.dims is None else logits.dims[2]
        if classes is None:
            raise ValueError("The number of classes must be known: logits have shape " + str(logits.shape))
        blank = blank_index or 0
        blank += classes if blank < 0 else 0
        if not 0 <= blank < classes:
            raise ValueError(f"Argument `blank_index` must be a class of {classes}. Received: {blank_index}")
        if not logits_time_major:
            logits = F.Transpose(logits, [1, 0, 2])
        if sparse:
            return _loss_of_sparse(labels, logits, logit_length, blank, classes)
        return _loss_of_dense(labels, logits, label_length, logit_length, blank, classes)


def _loss_of_sparse(labels: SparseTensor, logits: Tensor, lengths: Any, blank: int, classes: int) -> Tensor:
    above = F.Cast(F.Greater(labels.values, blank), DstT=dtypes.int32)
    logits = _with_blank_at(logits, blank, classes, last=True)
    result: Tensor = ctc_loss_op.several(logits, labels.indices, F.Sub(labels.values, above), lengths).loss
    return result


def _loss_of_dense(
    labels: Any, logits: Tensor, label_lengths: Any, lengths: Any, blank: int, classes: int
) -> Tensor:
    labels = F.Cast(labels, DstT=dtypes.int32)
    columns = F.Range(0, F.GatherV2(F.Shape(labels), 1, 0), 1)
    places = F.Where(F.Less(columns, F.ExpandDims(label_lengths, 1)))
    values = F.GatherNd(labels, places)
    below = F.Cast(F.Less(values, blank), DstT=dtypes.int32)
    logits = _with_blank_at(logits, blank, classes, last=False)
    result: Tensor = ctc_loss_v2_op.several(logits, places, F.Add(values, below), lengths).loss
    return result


def _with_blank_at(logits: Tensor, blank: int, classes: int, last: bool) -> Tensor:
    """Logits whose blank is the last class, or the first."""
    others = [label for label in range(classes) if label != blank]
    order = [*others, blank] if last else [blank, *others]
    return logits if order == list(range(classes)) else F.GatherV2(logits, np.array(order, np.int32), 2)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(each row's labels without repeats and padded with 0, int64, the place of each label there, int32):
    what `ctc_loss_v2` may be given. Both are [batch, labels].
    """
    with get_default_graph().name_scope(name or "ctc_unique_labels"):
        labels = F.Cast(convert_to_tensor(labels, name="labels"), DstT=dtypes.int32)
        same = F.Equal(F.ExpandDims(labels, 2), F.ExpandDims(labels, 1))
        earliest = F.ArgMax(F.Cast(same, DstT=dtypes.int32), 2, output_type=dtypes.int32)
        length = F.GatherV2(F.Shape(labels), 1, 0)
        is_first = F.Equal(earliest, F.Range(0, length, 1))
        rank = F.Cumsum(F.Cast(is_first, DstT=dtypes.int32), 1, exclusive=True)
        places = F.GatherV2(rank, earliest, 1, batch_dims=1)
        firsts = F.Where(is_first)
        rows = F.GatherV2(firsts, [0], 1)
        to = F.ConcatV2([rows, F.Cast(F.ExpandDims(F.GatherNd(rank, firsts), 1), DstT=dtypes.int64)], 1)
        shape = F.Cast(F.Shape(labels), DstT=dtypes.int64)
        unique = F.ScatterNd(to, F.Cast(F.GatherNd(labels, firsts), DstT=dtypes.int64), shape)
        unique.set_shape([None if labels.dims is None else labels.dims[0], None])
        return unique, places
