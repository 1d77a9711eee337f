"""Steps in threads, and waiting for what they do: for the tests of what blocks."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest


class Running:
    """A step in a thread: `result`, or the error it ended with."""

    def __init__(self, session: Any, fetches: Any, feeds: Any = None, options: Any = None) -> None:
        self.result: Any = "waiting"
        self._thread = threading.Thread(
            target=self._run, args=(session, fetches, feeds, options), daemon=True
        )
        self._thread.start()

    def _run(self, session: Any, fetches: Any, feeds: Any, options: Any) -> None:
        try:
            self.result = session.run(fetches, feeds, options)
        except Exception as error:
            self.result = error

    def ended(self) -> Any:
        """What came of it; fails if it does not end."""
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.result


def until(condition: Any) -> None:
    """Waits until `condition()` holds; fails if it does not."""
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)


def own_threads() -> set[threading.Thread]:
    """The process's threads but those that it keeps once they are needed, which may be at any time."""
    others = ("flowstone-native", "flowstone native code", "flowstone large pages", "flowstone cores")
    return {each for each in threading.enumerate() if not each.name.startswith(others)}


def runtime_object(session: Any, handle: Any) -> Any:
    """The object behind a handle: a queue, a barrier, a mutex …"""
    environment = next(iter(session.planner.options.environments.values()))  # the first device is the host
    return handle.op.declaration.kernels["CPU"](handle.op, environment).value


def refused(session: Any, fetches: Any, kind: type, words: str, feeds: Any = None) -> None:
    """Fails unless the step fails with this error."""
    with pytest.raises(kind) as caught:
        session.run(fetches, feeds)
    assert words in str(caught.value)
