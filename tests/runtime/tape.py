"""A simulated CUDA graph, on the CPU: it notes ATen's calls, undoes them, and makes them again.

As on a GPU, what is noted are operations and addresses: a replay reads and writes the very tensors of the
recording, so that a feed that is not copied there, or a variable that has another buffer by now, gives wrong
results here too. Work between `begin` and `end` leaves nothing behind, random generators included. What
would wait for a device cannot be recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# How ATen is asked for a scalar, and where values decide on a shape. Lists are shapes, on the host anyway.
_WAITING = (
    "aten._local_scalar_dense",
    "aten.item",
    "aten.is_nonzero",
    "aten.nonzero",
    "aten._unique2",
)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _written(function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
    """The arguments that the call changes."""
    values = []
    for i, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            values.append(arguments[i] if i < len(arguments) else keywords.get(argument.name))
    return values


class Tape(TorchDispatchMode):
    """Implements `cuda_graph.Recorder`. `made` lists all tapes; `events` says what was asked of this one."""

    made: list[Tape] = []

    def __init__(self, device: torch.device, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.events: list[str] = []
        self._generators = generators
        self._calls: list[tuple[Any, Any, Any, Any]] = []
        self._before: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._states: list[torch.Tensor] = []
        self._is_broken = False
        Tape.made.append(self)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        self.events.append("beside")
        yield

    def begin(self) -> None:
        self.events.append("begin")
        self._states = [generator.get_state() for generator in self._generators]
        self.__enter__()

    def end(self) -> None:
        self.events.append("end")
        self.__exit__(None, None, None)
        for tensor, value in reversed(self._before):
            tensor.copy_(value)
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
        if self._is_broken:
            raise RuntimeError("operation failed due to a previous error during capture")

    def replay(self) -> None:
        self.events.append("replay")
        for function, arguments, keywords, results in self._calls:
            given = {_memory(x) for x in _tensors((arguments, keywords))}
            for old, new in zip(_tensors(results), _tensors(function(*arguments, **keywords))):
                if _memory(new) not in given:
                    old.copy_(new)

    def release(self) -> None:
        self.events.append("release")
        self._calls = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if str(function).startswith(_WAITING):
            self._is_broken = True
            raise RuntimeError("operation not permitted when stream is capturing")
        self._before += [(x, x.clone()) for x in _tensors(_written(function, args, keywords))]
        results = function(*args, **keywords)
        self._calls.append((function, args, keywords, results))
        return results
