"""The sequences of labels that logits of time steps mean: the most probable path's, or the best of a beam
search.

Logits are [time, batch, classes] and every row has its own number of time steps. Sequences are sparse
matrices [batch, …]: their indices, values and shape. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.machine.network_code import path_beams, path_labels
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.ctc_beams import BeamSearch
from flowstone.ops.networks.windows import require_rank

__all__ = ["ctc_beam_search_decoder", "ctc_beam_search_decoder_v2", "ctc_greedy_decoder"]

_TYPES = "T: type in [float32, float64] = float32"

greedy_decoder_op = op(
    "CTCGreedyDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, "
    "decoded_shape: int64, log_probability: T",
    f"merge_repeated: bool = false ; blank_index: int = -1 ; {_TYPES}",
    host=("sequence_length",),
    capturable=False,
)
beam_search_decoder_op = op(
    "CTCBeamSearchDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: top_paths*int64, "
    "decoded_values: top_paths*int64, decoded_shape: top_paths*int64, log_probability: T",
    f"beam_width: int >= 1 ; top_paths: int >= 1 ; merge_repeated: bool = true ; {_TYPES}",
    host=("sequence_length",),
    capturable=False,
    starts_team=True,
)


def _rows(node: Node) -> int | None:
    logits, lengths = require_rank(node.dims(0), 3), require_rank(node.dims(1), 1)
    if None not in (logits[1], lengths[0]) and logits[1] != lengths[0]:
        raise ValueError(f"Dimensions must be equal, but are {logits[1]} and {lengths[0]}")
    return lengths[0] if logits[1] is None else logits[1]


@greedy_decoder_op.infer
def _(node: Node) -> Shapes:
    return [(None, 2), (None,), (2,), (_rows(node), 1)]


@beam_search_decoder_op.infer
def _(node: Node) -> Shapes:
    count, rows = node.attributes["top_paths"], _rows(node)
    return [*[(None, 2)] * count, *[(None,)] * count, *[(2,)] * count, (rows, count)]


def _check(logits: torch.Tensor, lengths: torch.Tensor) -> None:
    if logits.dim() != 3:
        raise invalid("inputs is not a 3-Tensor")
    if not logits.numel():
        raise invalid("inputs must not be empty")
    if lengths.dim() != 1:
        raise invalid("sequence_length is not a vector")
    if len(lengths) != logits.shape[1]:
        raise errors.FailedPreconditionError(
            None, None, f"len(sequence_length) != batch_size. {len(lengths)} vs. {logits.shape[1]}"
        )
    too_long = (lengths > len(logits)).nonzero()
    if len(too_long):
        row = int(too_long[0])
        raise errors.FailedPreconditionError(
            None, None, f"sequence_length({row}) <= {len(logits)} does not hold of {int(lengths[row])}"
        )


def _sparse(labels: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(indices, values, shape) of the kept labels of [rows, time], moved together."""
    counts = kept.sum(1)
    places = kept.reshape(-1).nonzero()[:, 0]
    row = torch.arange(len(kept), device=kept.device).repeat_interleave(counts)
    first = (counts.cumsum(0) - counts).repeat_interleave(counts)
    column = torch.arange(len(places), device=kept.device) - first
    shape = torch.stack([torch.tensor(len(kept), device=kept.device), counts.amax()])
    return torch.stack([row, column], 1), labels.reshape(-1).index_select(0, places), shape


def _first_of(labels: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(indices, values, shape) of so many first labels of each row of [rows, time]."""
    kept = torch.arange(labels.shape[1]) < counts[:, None]
    shape = torch.stack([torch.tensor(len(counts)), counts.amax()])
    return kept.nonzero(), labels.masked_select(kept), shape


def _runs_begin(labels: torch.Tensor) -> torch.Tensor:
    """Where a label differs from the one before it in its row."""
    begins = torch.ones_like(labels, dtype=torch.bool)
    torch.ne(labels[:, 1:], labels[:, :-1], out=begins[:, 1:])
    return begins


@greedy_decoder_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    merge, blank_index = node.attributes["merge_repeated"], node.attributes["blank_index"]
    native = path_labels(node.attributes["T"].torch) if env.device.type == "cpu" else None

    def run(logits: torch.Tensor, lengths: torch.Tensor) -> list[torch.Tensor]:
        _check(logits, lengths)
        classes = logits.shape[2]
        blank = blank_index + classes if blank_index < 0 else blank_index
        if not 0 <= blank < classes:
            raise invalid(
                f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}"
            )
        decoded = native(logits, lengths, blank, merge) if native is not None else None
        if decoded is not None:
            labels, counts, score = decoded
            return [*_first_of(labels, counts), score]
        logits = logits[: max(int(lengths.max()), 0)]
        inside = torch.arange(len(logits), device=logits.device) < lengths.to(logits.device)[:, None]
        largest, labels = logits.max(2)
        if bool(largest.isnan().any()):
            ordered = logits.nan_to_num(-torch.inf, torch.inf, -torch.inf)
            ordered[:, :, 0].masked_fill_(logits[:, :, 0].isnan(), torch.inf)  # nothing exceeds NaN
            labels = ordered.argmax(2)
            largest = logits.gather(2, labels[:, :, None])[:, :, 0]
        largest, labels = largest.t().contiguous(), labels.t().contiguous()
        kept = inside & (labels != blank)
        if merge:
            kept &= _runs_begin(labels)
        score = -largest.masked_fill(~inside, 0).sum(1, keepdim=True)
        return [*_sparse(labels, kept), score]

    return run


@beam_search_decoder_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    width, paths = node.attributes["beam_width"], node.attributes["top_paths"]
    merge = node.attributes["merge_repeated"]
    native = path_beams(node.attributes["T"].torch) if env.device.type == "cpu" else None

    def run(logits: torch.Tensor, lengths: torch.Tensor) -> list[torch.Tensor]:
        _check(logits, lengths)
        if paths > width:
            raise invalid(f"requested more paths than the beam width: {paths} of {width}")
        logs = logits[: max(int(lengths.max()), 1)].log_softmax(2)
        decoded = native(logs, lengths, width, paths, merge) if native is not None else None
        if decoded is not None:
            labels, counts, scores = decoded
            found = [_first_of(labels[:, path], counts[:, path]) for path in range(paths)]
        else:
            labels, scores = _search(logs, lengths, width, paths)
            found = [_sequences(labels[:, path], merge) for path in range(paths)]
        if bool(scores.isneginf().any()):
            raise invalid(f"Less leaves in the beam search than requested: {paths}")
        return [part for parts in zip(*found) for part in parts] + [scores]

    return run


def _search(
    logs: torch.Tensor, lengths: torch.Tensor, width: int, paths: int
) -> tuple[torch.Tensor, torch.Tensor]:
    steps, rows, classes = logs.shape
    search = BeamSearch(rows, classes, width, logs)
    active = torch.arange(steps)[:, None] < lengths
    for moment, now in zip(logs, active.to(logs.device)):
        search.advance(moment, now)
    return search.best(paths)


def _sequences(labels: torch.Tensor, merge: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sparse matrix of labels [rows, time] that are not -1; of equal neighbours one, if asked."""
    indices, values, shape = _sparse(labels, labels >= 0)
    if not merge or not len(values):
        return indices, values, shape
    together = torch.full((int(shape[0]), int(shape[1])), -1, dtype=torch.int64, device=labels.device)
    together[indices[:, 0], indices[:, 1]] = values
    return _sparse(together, (together >= 0) & _runs_begin(together))


def _beam_cost(node: Node) -> float:
    """A sort of the labels and of some seven extensions a beam, in each time step of each row."""
    steps, rows, classes = (size or 32 for size in node.dims(0) or (32, 32, 32))
    return float(steps * rows * (30 * classes + 300 * node.attributes["beam_width"]))


def _greedy_cost(node: Node) -> float:
    steps, rows, classes = (size or 32 for size in node.dims(0) or (32, 32, 32))
    return float(steps * rows * classes)


greedy_decoder_op.cost(_greedy_cost)
beam_search_decoder_op.cost(_beam_cost)
greedy_decoder_op.not_differentiable()
beam_search_decoder_op.not_differentiable()


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """([the labels of each row's most probable path], minus the sum of its logits).

    Args:
        inputs: logits, float32 or float64 [time, batch, classes].
        sequence_length: int32 [batch], the time steps of each row.
        merge_repeated: whether runs of one class are one label.
        blank_index: the class that is no label, the last unless given; negative ones count from the last.

    The labels are an int64 SparseTensor [batch, …], the sums [batch, 1]. Raises FailedPreconditionError,
    while running, for more time steps than there are, and InvalidArgumentError for empty inputs.
    """
    found = greedy_decoder_op.several(
        inputs,
        sequence_length,
        merge_repeated=merge_repeated,
        blank_index=-1 if blank_index is None else blank_index,
    )
    return [SparseTensor(*found[:3])], found.log_probability


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """(the most probable sequences of labels, their log-probabilities), by a search over `beam_width` beams.

    Args:
        inputs: logits, float32 or float64 [time, batch, classes]; the last class is the blank.
        sequence_length: int32 [batch], the time steps of each row.
        beam_width: how many sequences are followed.
        top_paths: how many are returned.
        merge_repeated: whether equal neighbours in the sequences found become one.

    The sequences are int64 SparseTensors [batch, …], the log-probabilities [batch, top_paths]. Raises
    InvalidArgumentError, while running, if there are fewer sequences than asked for or `inputs` is empty, and
    FailedPreconditionError for more time steps than there are.
    """
    found = beam_search_decoder_op.several(
        inputs, sequence_length, beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated
    )
    decoded = zip(found.decoded_indices, found.decoded_values, found.decoded_shape)
    return [SparseTensor(*parts) for parts in decoded], found.log_probability


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` that leaves equal neighbours as they are."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)
