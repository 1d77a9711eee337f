"""A provider that reads the examples of a dataset, by several readers at once."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.slim import parallel_reader as parallel_reader
from flowstone.contrib.slim.data_provider import DataProvider

__all__ = ["DatasetDataProvider"]


class DatasetDataProvider(DataProvider):
    """The items of the next example of a dataset, and its record's key under `record_key`.

    Args:
        dataset: a `Dataset`.
        num_readers: how many readers work at once.
        reader_kwargs: arguments of a reader.
        shuffle: whether files and records come in random order.
        num_epochs: how often each file is read; None: for ever.
        common_queue_capacity, common_queue_min: the most records that wait, and how many remain to be mixed
            with.
        record_key: the item of the record's key.
        seed: of the random order.
        scope: the operations' name.

    Raises ValueError if the dataset has an item `record_key`.
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Any = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_reader.parallel_read(
            dataset.data_sources, dataset.reader, num_epochs=num_epochs, num_readers=num_readers,
            reader_kwargs=reader_kwargs, shuffle=shuffle, capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min, seed=seed, scope=scope,
        )  # fmt: skip
        items = dataset.decoder.list_items()
        tensors = dataset.decoder.decode(data, items)
        items_to_tensors = dict(zip(items, tensors))
        if record_key in items_to_tensors:
            raise ValueError(
                f"The item name used for `record_key` cannot also be used for a dataset item: {record_key}"
            )
        items_to_tensors[record_key] = key
        super().__init__(items_to_tensors, num_samples=dataset.num_samples)
