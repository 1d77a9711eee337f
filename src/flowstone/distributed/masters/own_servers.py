"""The servers of this process by their targets: sessions that connect to one of them need no messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowstone.distributed.masters.master import Master

__all__ = ["masters"]

masters: dict[str, Master] = {}
