"""`tf.nn.collapse_repeated`: sequences of labels without repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.masks import boolean_mask, sequence_mask

__all__ = ["collapse_repeated"]


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(labels [batch, time] in which of equal neighbours the first is left, their new lengths [batch]).

    `seq_length`: the lengths [batch]. The result is as long as its longest sequence, zeros are behind the
    others.
    """
    with get_default_graph().name_scope(name or "collapse_repeated_labels"):
        labels = convert_to_tensor(labels, name="labels")
        lengths = convert_to_tensor(seq_length, name="seq_length")
        first = F.OnesLike(F.Cast(labels[:, :1], DstT=dtypes.bool))
        changes = F.ConcatV2([first, F.NotEqual(labels[:, 1:], labels[:, :-1])], np.int32(1))
        kept = F.LogicalAnd(changes, sequence_mask(lengths, maxlen=F.Shape(labels)[1]))
        kept.set_shape([None, None])
        counts = F.Cast(F.Sum(F.Cast(kept, DstT=dtypes.int32), np.int32(1)), DstT=lengths.dtype)
        places = sequence_mask(counts, maxlen=F.Max(counts, np.int32(0)))
        shape = F.Shape(places, out_type=dtypes.int64)
        collapsed = F.ScatterNd(F.Where(places), boolean_mask(labels, kept), shape)
        collapsed.set_shape([None if labels.dims is None else labels.dims[0], None])
        return collapsed, counts
