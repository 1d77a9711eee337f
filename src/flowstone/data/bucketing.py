"""Transformations that make batches: whole ones only, by the length of the elements, of sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.data.arguments import as_int64
from flowstone.data.dataset import Dataset, op_dataset
from flowstone.data.experimental import group_by_window
from flowstone.data.structure import flatten, packed
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.control.checks import assert_less

__all__ = [
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "padded_batch_and_drop_remainder",
    "sliding_window_batch",
]

Transformation = Callable[[Dataset], Dataset]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """Batches of exactly `batch_size` elements; what is left at the end is dropped."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Transformation:
    """`Dataset.padded_batch` of exactly `batch_size` elements; what is left at the end is dropped."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, True)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Padded batches of elements of similar length.

    Args:
        element_length_func: the length, an int32 scalar, of an element.
        bucket_boundaries: the lengths at which buckets begin, rising; before the first there is a bucket too.
        bucket_batch_sizes: the batch size of each bucket, one more than there are boundaries.
        padded_shapes: as in `Dataset.padded_batch`; those of the elements if None.
        padding_values: as in `Dataset.padded_batch`.
        pad_to_bucket_boundary: pad unknown dimensions to one less than the bucket's end, not to the
            longest of the batch. An element of the last bucket, which has no end, is then an
            InvalidArgumentError.
        no_padding: batches without padding, for sparse components or elements of equal shape.
        drop_remainder: whether smaller batches at the end are dropped.

    ValueError unless there is one batch size more than boundaries.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")

    def bucket_of(*element: Any) -> Tensor:
        length = F.Cast(convert_to_tensor(element_length_func(*element)), DstT=dtypes.int64)
        starts = convert_to_tensor(list(bucket_boundaries), dtypes.int64)
        passed = F.Cast(F.LessEqual(starts, length), DstT=dtypes.int64)
        return F.Sum(passed, convert_to_tensor([0], dtypes.int32))

    def size_of(bucket: Tensor) -> Tensor:
        sizes = convert_to_tensor(list(bucket_batch_sizes), dtypes.int64)
        return F.GatherV2(sizes, bucket, convert_to_tensor(0))

    def batch_of(bucket: Tensor, window: Dataset) -> Dataset:
        size = size_of(bucket)
        if no_padding:
            return window.batch(size, drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = window.output_shapes
        if pad_to_bucket_boundary:
            length = _last_length(bucket, bucket_boundaries)
            shapes = _filled(shapes, window, length)
            with get_default_graph().control_dependencies([length.op]):
                size = F.Identity(size)
        return window.padded_batch(size, shapes, padding_values, drop_remainder)

    return group_by_window(bucket_of, batch_of, window_size_func=size_of)


def _last_length(bucket: Tensor, boundaries: Sequence[int]) -> Tensor:
    """The greatest length of a bucket. InvalidArgumentError, while running, for the last bucket."""
    ends = convert_to_tensor([each - 1 for each in boundaries], dtypes.int64)
    last = convert_to_tensor(len(boundaries), dtypes.int64)
    words = "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
    with get_default_graph().control_dependencies([assert_less(bucket, last, message=words)]):
        return F.GatherV2(ends, bucket, convert_to_tensor(0))


def _filled(shapes: Any, window: Dataset, length: Tensor) -> Any:
    """The padded shapes with `length` in place of what is unknown."""
    form = window._structure.form
    found = []
    for shape in flatten(shapes):
        dims = [None if n is None or int(n) < 0 else int(n) for n in _dims(shape)]
        known = [length if n is None else convert_to_tensor(n, dtypes.int64) for n in dims]
        found.append(F.Pack(known, axis=0) if known else convert_to_tensor([], dtypes.int64))
    return packed(form, found)


def _dims(shape: Any) -> list[Any]:
    if isinstance(shape, Tensor):
        value = static_value(shape)
        if value is None:
            raise ValueError("padded_shapes must be known where pad_to_bucket_boundary is set")
        return list(value)
    dims: list[Any] = as_shape([None if n == -1 else n for n in shape]).as_list()
    return dims


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    """Batches ``[window_size, …]`` of windows that move over the elements.

    A window takes every `window_stride`-th element and begins `window_shift` elements (1 if None; `stride`
    is its old name) after the one before. Windows that the end cuts off are dropped. ValueError for both
    names.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = stride if stride is not None else (1 if window_shift is None else window_shift)

    def apply(dataset: Dataset) -> Dataset:
        numbers = [
            as_int64(window_size, "window_size"),
            as_int64(shift, "window_shift"),
            as_int64(window_stride, "window_stride"),
        ]
        structure = dataset._structure.with_shapes(lambda shape: TensorShape([None]).concatenate(shape))
        return op_dataset("SlidingWindowDataset", structure, lambda: F.SlidingWindowDataset(
            dataset._as_variant_tensor(), *numbers, **structure.attributes))  # fmt: skip

    return apply
