"""What a dataset is: its files, their reader, the decoder of their records."""

from __future__ import annotations

from typing import Any

__all__ = ["Dataset"]


class Dataset:
    """A dataset; its arguments are its attributes.

    Args:
        data_sources: paths or patterns of its files.
        reader: the class of their reader, such as `tf.TFRecordReader`.
        decoder: a `DataDecoder`.
        num_samples: how many examples there are.
        items_to_descriptions: what each item is, by name.
        **kwargs: whatever else belongs to it, such as ``num_classes``.
    """

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int | None,
        items_to_descriptions: Any,
        **kwargs: Any,
    ) -> None:
        self.__dict__.update(kwargs)
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"The dataset has no attribute {name!r}: give it to the constructor")
