"""A session that ends while an element is being fetched ahead."""

from __future__ import annotations

import threading
from typing import Any

from flowstone.ops.datasets.prefetching import _Buffer


class Source:
    """A source whose fetching goes on until it is told to end."""

    def __init__(self) -> None:
        self.began, self.goes_on, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.is_fetching = self.was_closed_meanwhile = False

    def next(self, step: Any) -> Any:
        self.is_fetching = True
        self.began.set()
        assert self.goes_on.wait(60)
        self.is_fetching = False
        return (1,)

    def close(self) -> None:
        self.was_closed_meanwhile = self.is_fetching
        self.closed.set()


def test_the_source_is_closed_when_the_fetching_has_ended() -> None:
    source: Any = Source()
    buffer = _Buffer(source, 2)
    thread = threading.Thread(target=buffer.fill, args=(None,))
    thread.start()
    assert source.began.wait(60)
    buffer.close()
    assert not source.closed.is_set()
    source.goes_on.set()
    assert source.closed.wait(60) and not source.was_closed_meanwhile
    thread.join(60)
    assert not thread.is_alive()


def test_the_source_is_closed_at_once_if_nothing_is_fetched() -> None:
    source: Any = Source()
    _Buffer(source, 2).close()
    assert source.closed.is_set()
