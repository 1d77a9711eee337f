"""The Datasets of `tf.contrib.data` in TensorFlow 1.2 to 1.4: those of `tf.data`, with more methods.

What their methods return is such a Dataset again. An iterator, and the functions of elements, take them as
they take those of `tf.data`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.data import experimental

__all__ = ["Dataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]


class Dataset(tf.data.Dataset):
    """A Dataset of `tf.data` with this era's methods; TypeError for anything else."""

    def __init__(self, dataset: Any) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(f"`dataset` must be a `Dataset` object, not a {type(dataset).__name__}")
        self._dataset = dataset

    def _as_variant_tensor(self) -> tf.Tensor:
        return self._dataset._as_variant_tensor()

    @property
    def _structure(self) -> Any:
        return self._dataset._structure

    @property
    def output_classes(self) -> Any:
        """The class of each component."""
        return self._dataset.output_classes

    @property
    def output_shapes(self) -> Any:
        """The TensorShape of each component."""
        return self._dataset.output_shapes

    @property
    def output_types(self) -> Any:
        """The DType of each component."""
        return self._dataset.output_types

    def make_dataset_resource(self) -> tf.Tensor:
        """The dataset as a value of the graph."""
        return self._as_variant_tensor()

    # ---- sources

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """See `tf.data.Dataset.from_tensors`."""
        return Dataset(tf.data.Dataset.from_tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """See `tf.data.Dataset.from_tensor_slices`."""
        return Dataset(tf.data.Dataset.from_tensor_slices(tensors))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """See `tf.data.Dataset.from_sparse_tensor_slices`."""
        return Dataset(tf.data.Dataset.from_sparse_tensor_slices(sparse_tensor))

    @staticmethod
    def from_generator(
        generator: Any, output_types: Any, output_shapes: Any = None, args: Any = None
    ) -> Dataset:
        """See `tf.data.Dataset.from_generator`."""
        return Dataset(tf.data.Dataset.from_generator(generator, output_types, output_shapes, args))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """See `tf.data.Dataset.range`."""
        return Dataset(tf.data.Dataset.range(*args))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """See `tf.data.Dataset.zip`."""
        return Dataset(tf.data.Dataset.zip(datasets))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files, see `tf.data.Dataset.list_files`."""
        return Dataset(tf.data.Dataset.list_files(file_pattern, shuffle, seed))

    # ---- transformations

    def repeat(self, count: Any = None) -> Dataset:
        """See `tf.data.Dataset.repeat`."""
        return Dataset(self._dataset.repeat(count))

    def take(self, count: Any) -> Dataset:
        """See `tf.data.Dataset.take`."""
        return Dataset(self._dataset.take(count))

    def skip(self, count: Any) -> Dataset:
        """See `tf.data.Dataset.skip`."""
        return Dataset(self._dataset.skip(count))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """See `tf.data.Dataset.shard`."""
        return Dataset(self._dataset.shard(num_shards, index))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """See `tf.data.Dataset.filter`."""
        return Dataset(self._dataset.filter(predicate))

    def concatenate(self, dataset: Any) -> Dataset:
        """See `tf.data.Dataset.concatenate`."""
        return Dataset(self._dataset.concatenate(dataset))

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """See `tf.data.Dataset.shuffle`."""
        return Dataset(self._dataset.shuffle(buffer_size, seed, reshuffle_each_iteration))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """See `tf.data.Dataset.prefetch`."""
        return Dataset(self._dataset.prefetch(buffer_size))

    def cache(self, filename: Any = "") -> Dataset:
        """See `tf.data.Dataset.cache`."""
        return Dataset(self._dataset.cache(filename))

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """See `tf.data.Dataset.batch`."""
        return Dataset(self._dataset.batch(batch_size, drop_remainder))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None, drop_remainder: Any = False
    ) -> Dataset:
        """See `tf.data.Dataset.padded_batch`."""
        return Dataset(self._dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """See `tf.data.Dataset.flat_map`."""
        return Dataset(self._dataset.flat_map(map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = -1,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """See `tf.data.Dataset.interleave`."""
        return Dataset(self._dataset.interleave(map_func, cycle_length, block_length, num_parallel_calls))

    def map(  # type: ignore[override]
        self,
        map_func: Callable[..., Any],
        num_threads: Any = None,
        output_buffer_size: Any = None,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """``map_func(element)`` of each element; `num_threads` and `num_parallel_calls` are how many calls
        run at once, `output_buffer_size` how many results are fetched ahead."""
        calls = num_threads if num_parallel_calls is None else num_parallel_calls
        mapped = self._dataset.map(map_func, calls)
        return Dataset(mapped if output_buffer_size is None else mapped.prefetch(output_buffer_size))

    def apply(self, transformation_func: Callable[[Any], Any]) -> Dataset:
        """``transformation_func(self)``. TypeError if that is no Dataset."""
        return Dataset(super().apply(transformation_func))

    # ---- transformations that became functions

    def dense_to_sparse_batch(self, batch_size: Any, row_shape: Any) -> Dataset:
        """See `tf.contrib.data.dense_to_sparse_batch`."""
        return self.apply(experimental.dense_to_sparse_batch(batch_size, row_shape))

    def enumerate(self, start: Any = 0) -> Dataset:
        """See `tf.contrib.data.enumerate_dataset`."""
        return self.apply(experimental.enumerate_dataset(start))

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any
    ) -> Dataset:
        """See `tf.contrib.data.group_by_window`."""
        return self.apply(experimental.group_by_window(key_func, reduce_func, window_size))

    def ignore_errors(self) -> Dataset:
        """See `tf.contrib.data.ignore_errors`."""
        return self.apply(experimental.ignore_errors())

    def unbatch(self) -> Dataset:
        """See `tf.contrib.data.unbatch`."""
        return self.apply(experimental.unbatch())


class TextLineDataset(Dataset):
    """The lines of text files, see `tf.data.TextLineDataset`."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(tf.data.TextLineDataset(filenames, compression_type, buffer_size))


class TFRecordDataset(Dataset):
    """The records of TFRecord files, see `tf.data.TFRecordDataset`."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(tf.data.TFRecordDataset(filenames, compression_type, buffer_size))


class FixedLengthRecordDataset(Dataset):
    """Records of one length of files, see `tf.data.FixedLengthRecordDataset`."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
    ) -> None:
        super().__init__(
            tf.data.FixedLengthRecordDataset(filenames, record_bytes, header_bytes, footer_bytes, buffer_size)
        )
