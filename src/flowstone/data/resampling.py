"""Examples whose classes are distributed as asked for: `tf.data.experimental.rejection_resample`.

Rejection alone keeps an example of class i with a probability in proportion to ``ratio[i] = target[i] /
initial[i]``. Fewer are lost when a share of the result, m, are examples as they come and the rest are kept
with ``a[i]``. Both have the target's distribution for every m up to the least ratio, which is taken::

    m = min(ratio)        a[i] = (ratio[i] - m) / (max(ratio) - m)

(hence m = 1 if the target is the initial distribution). The dataset is read twice side by side, as it comes
and filtered. If the initial distribution is not known, the classes of 32 examples at a time are counted, ten
of each class before the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.choosing import sample_from_datasets
from flowstone.data.dataset import Dataset
from flowstone.data.experimental import scan, unbatch
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.randomness.random import random_uniform

__all__ = ["rejection_resample"]

_COUNTED_AT_ONCE, _OF_EACH_BEFORE = 32, 10


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Callable[[Dataset], Dataset]:
    """(class, element) of elements chosen at random, such that classes are distributed as `target_dist`.

    ``class_func(element)`` is an int32 scalar; `target_dist` a float vector, `initial_dist` that of the
    elements, which is counted on the way if None.
    """
    target = convert_to_tensor(target_dist, name="target_dist")

    def apply(dataset: Dataset) -> Dataset:
        classes = dataset.map(
            lambda *element: F.Cast(convert_to_tensor(class_func(*element)), DstT=dtypes.int32)
        )
        if initial_dist is None:
            shares = _counted(classes, target)
        else:
            initial = convert_to_tensor(initial_dist, target.dtype, name="initial_dist")
            shares = Dataset.from_tensors(initial).repeat()
        pairs = Dataset.zip((classes, dataset))
        filtered = Dataset.zip((shares.map(lambda p: _mixture(target, p)[0]), pairs)).filter(
            lambda kept, pair: F.Less(
                random_uniform([], dtype=target.dtype, seed=seed),
                F.GatherV2(kept, pair[0], convert_to_tensor(0)),
            )
        )
        weights = shares.map(lambda p: _weights(_mixture(target, p)[1]))
        return sample_from_datasets([pairs, filtered.map(lambda _, pair: pair)], weights, seed)

    return apply


def _mixture(target: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """The probability that an example of each class is kept; the share of examples as they come."""
    tiny, axes = convert_to_tensor(1e-30, target.dtype), convert_to_tensor([0], dtypes.int32)
    ratio = F.RealDiv(target, F.Maximum(initial, tiny))
    least, greatest = F.Min(ratio, axes), F.Max(ratio, axes)
    kept = F.RealDiv(F.Sub(ratio, least), F.Sub(greatest, least))
    # Where nothing is to change, filtered ones are drawn at times, so that the end of the others is noticed.
    same = F.Equal(least, greatest)
    nearly_all = convert_to_tensor(0.999, target.dtype)
    return F.SelectV2(same, F.OnesLike(kept), kept), F.SelectV2(same, nearly_all, least)


def _weights(share: Tensor) -> Tensor:
    return F.Pack([share, F.Sub(convert_to_tensor(1.0, share.dtype), share)], axis=0)


def _counted(classes: Dataset, target: Tensor) -> Dataset:
    """For each element the distribution of the classes up to the end of its batch."""
    one, none = convert_to_tensor(1, dtypes.int64), convert_to_tensor(0, dtypes.int64)
    axes = convert_to_tensor([0], dtypes.int32)
    before = F.Fill(F.Shape(target), convert_to_tensor(_OF_EACH_BEFORE, dtypes.int64))

    def count(counts: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        counts = F.AddV2(counts, F.Sum(F.OneHot(numbers, F.Size(counts), one, none, axis=-1), axes))
        numbers_seen = F.Cast(counts, DstT=target.dtype)
        shares = F.RealDiv(numbers_seen, F.Sum(numbers_seen, axes))
        return counts, F.Tile(F.ExpandDims(shares, convert_to_tensor(0)), [_COUNTED_AT_ONCE, 1])

    return classes.batch(_COUNTED_AT_ONCE).apply(scan(before, count)).apply(unbatch())
