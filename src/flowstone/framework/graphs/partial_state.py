"""`PartialState`: what a step in several calls has been fed and what was fetched of it.

=============  ============================================================================================
of the caller  refused with
=============  ============================================================================================
feed           InvalidArgumentError: not named when the run was set up, or fed before
fetch          InvalidArgumentError: not named when it was set up, fetched before, or not to be computed from
               what has been fed so far
=============  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor


def check_setup(feeds: Iterable[Tensor], fetches: Sequence[Tensor], targets: Sequence[Operation]) -> None:
    """InvalidArgumentError for nothing to fetch, and for a tensor that is both fed and fetched."""
    if not fetches and not targets:
        raise _invalid("Must specify at least one target to fetch or execute.")
    for tensor in feeds:
        if tensor in fetches:
            raise _invalid(f"{tensor.name} is both fed and fetched.")


class PartialState:
    """The state of one step with these feeds and fetches. `needs`: what `fed_before` found, by fetch; steps
    of one plan share it."""

    def __init__(
        self,
        feeds: Iterable[Tensor],
        fetches: Iterable[Tensor],
        needs: dict[Tensor, list[Tensor]] | None = None,
    ) -> None:
        self._feeds, self._fetches = dict.fromkeys(feeds), dict.fromkeys(fetches)
        self._unfed, self._unfetched = dict(self._feeds), dict(self._fetches)
        self._needs = {} if needs is None else needs

    @property
    def is_complete(self) -> bool:
        """Whether all feeds were given and all fetches taken."""
        return not self._unfed and not self._unfetched

    def check_feeds(self, feeds: Sequence[Tensor]) -> None:
        """InvalidArgumentError for a feed that is refused."""
        _check_known(feeds, self._unfed, self._feeds, "feed", "fed")

    def check_fetches(self, fetches: Sequence[Tensor], feeds: Sequence[Tensor], has_failed: bool) -> None:
        """InvalidArgumentError for a fetch that is refused once `feeds` are given; of a step that has failed
        each can be computed, as that failure."""
        _check_known(fetches, self._unfetched, self._fetches, "fetch", "fetched")
        for tensor in () if has_failed else fetches:
            if tensor not in self._needs:
                self._needs[tensor] = fed_before(tensor, self._feeds)
            for needed in self._needs[tensor]:
                if needed in self._unfed and needed not in feeds:
                    raise _invalid(
                        f"Fetch {needed.name} can't be computed from the feeds that have been fed so far."
                    )

    def feed(self, tensor: Tensor) -> None:
        """The tensor has been fed."""
        del self._unfed[tensor]

    def fetch(self, tensor: Tensor) -> None:
        """The tensor is being fetched."""
        del self._unfetched[tensor]


def fed_before(fetch: Tensor, feeds: Container[Tensor]) -> list[Tensor]:
    """Those of `feeds` that `fetch` depends on; a fed tensor depends on nothing else."""
    waiting: list[Tensor | Operation] = [fetch]
    seen: set[Any] = set()
    found: dict[Tensor, None] = {}
    while waiting:
        item = waiting.pop()
        if item in feeds:
            found[item] = None  # type: ignore[index]
            continue
        operation = item.op if isinstance(item, Tensor) else item
        if operation not in seen:
            seen.add(operation)
            waiting += reversed([*operation.inputs, *operation.control_inputs])
    return list(found)


def _check_known(
    tensors: Sequence[Tensor], open_ones: dict[Tensor, None], known: Any, kind: str, done: str
) -> None:
    for tensor in tensors:
        if tensor not in known:
            raise _invalid(f"The {kind} {tensor.name} was not specified in partial_run_setup.")
        if tensor not in open_ones:
            raise _invalid(f"The {kind} {tensor.name} has already been {done}.")


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)
