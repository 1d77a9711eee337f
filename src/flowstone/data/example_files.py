"""Datasets of Examples in files, as batches of parsed features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowstone.data.csv_files import _files
from flowstone.data.dataset import Dataset
from flowstone.data.readers import TFRecordDataset
from flowstone.ops.parsing.features import parse_example

__all__ = ["make_batched_features_dataset", "parse_example_dataset", "read_batch_features"]


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: Any = 1
) -> Callable[[Dataset], Dataset]:
    """Vectors of serialised Examples as dicts of their `features`, see `tf.parse_example`. ValueError without
    features."""
    if features is None:
        raise ValueError("Missing: features was None.")
    return lambda dataset: dataset.map(
        lambda serialized: parse_example(serialized, features), num_parallel_calls
    )


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Any = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the Examples in files, as dicts from the keys of `features` to tensors or SparseTensors; or
    (dict, label) with `label_key`.

    Args:
        file_pattern: the files, or patterns of them.
        reader: makes a dataset of a file, ``reader(filename, *reader_args)``: of Examples, or of pairs
            of a key and an Example.
        num_epochs: how often the files are read; without end if None, then all batches are whole.
        reader_num_threads: how many files are read at once.
        parser_num_threads: how many batches are parsed at once.

    ValueError for a label that is no feature, and where no file matches.
    """
    files = _files(file_pattern)
    if label_key is not None and label_key not in features:
        raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")
    dataset = Dataset.from_tensor_slices(files)
    if shuffle:
        dataset = dataset.shuffle(len(files), shuffle_seed)
    dataset = dataset.interleave(lambda name: reader(name, *(reader_args or ())), reader_num_threads or 1)
    if isinstance(dataset.output_types, tuple):
        dataset = dataset.map(lambda key, value: value)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    whole = drop_final_batch or num_epochs is None
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=whole)
    dataset = dataset.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        dataset = dataset.map(lambda found: (found, found.pop(label_key)))
    return dataset.prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Any = TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:
    """The next batch of `make_batched_features_dataset`, as tensors; `capacity` is its shuffling buffer."""
    dataset = make_batched_features_dataset(
        file_pattern, batch_size, features, reader, None, reader_args, num_epochs, randomize_input, capacity
    )
    return dataset.make_one_shot_iterator().get_next()
