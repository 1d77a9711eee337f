"""Decoders: they make named items, such as an image and its label, from a record."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

__all__ = ["DataDecoder"]


class DataDecoder(abc.ABC):
    """Makes items from records."""

    @abc.abstractmethod
    def decode(self, data: Any, items: Sequence[str]) -> Any:
        """The tensors of `items`, in their order, from a record."""

    @abc.abstractmethod
    def list_items(self) -> list[str]:
        """The names of the items that records have."""
