"""Datasets that keep the elements of the first whole pass, in memory or in files.

The files of the cache `prefix` are a checkpoint (`io/checkpoint_files`) with a tensor for each component of
each element, as TensorFlow writes and reads it. While a pass writes, there is a file
``<prefix>_<shard>.lockfile``; a shard ends where the state of the pass is saved, and the last pass merges
them. A pass that ends early leaves nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.io.checkpoint_files.bundle_reader import BundleReader, index_path
from flowstone.io.checkpoint_files.bundle_writer import BundleWriter, merge_bundles
from flowstone.io.file_system import (
    as_path,
    delete_file,
    file_exists,
    read_bytes,
    write_string_to_file,
)
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.handles import deleting_op, resource_op
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, dataset_op

__all__: list[str] = []

_ITEM_DIGITS = 7  # to which TensorFlow fills the numbers of elements


# ---- in memory


class MemoryCache:
    """The elements of the first whole pass, None until it has ended."""

    def __init__(self, elements: list[Element] | None = None) -> None:
        self.elements = elements
        self._lock = threading.Lock()

    def apart(self) -> MemoryCache:
        """Another one, for an equal dataset."""
        return MemoryCache()

    def save(self) -> list[Element] | None:
        """The elements."""
        return self.elements

    def fill(self, elements: list[Element]) -> None:
        """Keeps the elements of a pass that has ended; those of the first are kept."""
        with self._lock:
            if self.elements is None:
                self.elements = elements


class SharedCache(MemoryCache):
    """A resource: all datasets that name it keep their elements in it."""

    def apart(self) -> MemoryCache:
        """Itself."""
        return self


class CachedDataset(Dataset):
    """The elements of `source`, computed by the first whole pass only."""

    def __init__(self, source: Dataset, cache: MemoryCache | None = None) -> None:
        self.source, self.cache = source, cache or MemoryCache()

    def iterate(self) -> Iteration:
        """A pass over the kept elements, or one that keeps them."""
        return _Cached(self)

    def drawn(self) -> list[Any]:
        """With its own cache first; None for one that others share."""
        return [None if isinstance(self.cache, SharedCache) else self.cache, *super().drawn()]

    def go_on_after(self, drawn: Iterator[Any]) -> None:
        """With its own cache first, or what `MemoryCache.save` gave."""
        own = next(drawn)
        if not isinstance(self.cache, SharedCache):
            self.cache = own if isinstance(own, MemoryCache) else MemoryCache(own)
        super().go_on_after(drawn)


class _Cached(Iteration):
    """Either reads the kept elements from `place` on, or passes over the source and keeps what it `found`."""

    def __init__(self, dataset: CachedDataset) -> None:
        self.dataset, self.cache = dataset, dataset.cache
        self.place, self.found = 0, list[Element]()
        self.source = None if self.cache.elements is not None else dataset.source.iterate()

    def next(self, step: Any) -> Element | None:
        if self.source is None:
            kept = self.cache.elements or []
            self.place += 1
            return kept[self.place - 1] if self.place <= len(kept) else None
        element = self.source.next(step)
        if element is None:
            self.cache.fill(self.found)
        else:
            self.found.append(element)
        return element

    def save(self) -> Any:
        if self.source is None:
            return {"place": self.place, "kept": self.cache.elements}
        return {"source": self.source.save(), "found": list(self.found)}

    def restore(self, step: Any, state: Any) -> None:
        self.close()
        self.source = None
        if "kept" in state:
            self.cache.fill(state["kept"])
            self.place = state["place"]
        else:
            self.source = self.dataset.source.iterate()
            self.source.restore(step, state["source"])
            self.found = list(state["found"])

    def close(self) -> None:
        if self.source is not None:
            self.source.close()


# ---- in files


class FileCachedDataset(Dataset):
    """The elements of `source`, of `types`, kept in the files `prefix` by the first whole pass."""

    def __init__(self, source: Dataset, prefix: str, types: Sequence[DType]) -> None:
        self.source, self.prefix, self.types = source, prefix, types
        self._digits = len(str(max(len(types) - 1, 0)))

    def iterate(self) -> Iteration:
        """A pass over the files, if they are whole when its first element is asked for."""
        return _FileCached(self)

    def name(self, item: int, component: int) -> str:
        """The name of the tensor of a component."""
        return f"{item:{_ITEM_DIGITS}d}_{component:{self._digits}d}"

    def shard(self, number: int) -> str:
        """The prefix of the files of a shard."""
        return f"{self.prefix}_{number}"


class _FileCached(Iteration):
    """A pass that decides at its first element whether it reads or writes."""

    def __init__(self, dataset: FileCachedDataset) -> None:
        self.dataset = dataset
        self.part: _Reading | _Writing | None = None

    def _begun(self) -> _Reading | _Writing:
        if self.part is None:
            is_whole = file_exists(index_path(self.dataset.prefix))
            self.part = _Reading(self.dataset) if is_whole else _Writing(self.dataset)
        return self.part

    def next(self, step: Any) -> Element | None:
        return self._begun().next(step)

    def save(self) -> Any:
        return None if self.part is None else (type(self.part) is _Reading, self.part.save())

    def restore(self, step: Any, state: Any) -> None:
        self.close()
        self.part = None
        if state is not None:
            reads, of_part = state
            self.part = _Reading(self.dataset) if reads else _Writing(self.dataset)
            self.part.restore(step, of_part)

    def close(self) -> None:
        if self.part is not None:
            self.part.close()


class _Reading(Iteration):
    """A pass over whole files, `place` elements of which were read."""

    def __init__(self, dataset: FileCachedDataset) -> None:
        self.dataset, self.reader = dataset, BundleReader(dataset.prefix)
        self.place = 0

    def next(self, step: Any) -> Element | None:
        dataset, reader = self.dataset, self.reader
        if dataset.name(self.place, 0) not in reader:
            return None
        place, self.place = self.place, self.place + 1
        return tuple([self._component(place, i, dtype) for i, dtype in enumerate(dataset.types)])

    def _component(self, place: int, component: int, dtype: DType) -> Any:
        name = self.dataset.name(place, component)
        found = self.reader.entry(name).dtype
        if found is not dtype:
            raise invalid(
                f"The cache {self.dataset.prefix} has elements of other types: component {component} is "
                f"{found.name}, not {dtype.name}"
            )
        return to_runtime(self.reader.read(name), dtype)

    def save(self) -> Any:
        return self.place

    def restore(self, step: Any, state: Any) -> None:
        self.place = state

    def close(self) -> None:
        self.reader.close()


class _Writing(Iteration):
    """A pass over the source that writes what it found: `written` elements, in shards before number `shard`
    and in `writer`."""

    def __init__(self, dataset: FileCachedDataset) -> None:
        self.dataset, self.source = dataset, dataset.source.iterate()
        self.shard = self.written = 0
        self.writer: BundleWriter | None = None
        self.has_ended = False

    def next(self, step: Any) -> Element | None:
        if self.has_ended:
            return None
        if self.writer is None:
            self._lock()
            self.writer = BundleWriter(self.dataset.shard(self.shard))
        element = self.source.next(step)
        if element is None:
            self._finish()
            return None
        for i, (value, dtype) in enumerate(zip(element, self.dataset.types)):
            self.writer.add(self.dataset.name(self.written, i), to_numpy(value, dtype), dtype)
        self.written += 1
        return element

    @property
    def _lock_path(self) -> str:
        return f"{self.dataset.shard(self.shard)}.lockfile"

    def _lock(self) -> None:
        path = self._lock_path
        if file_exists(path):
            contents = read_bytes(path).decode(errors="replace")
            raise errors.AlreadyExistsError(
                None,
                None,
                "There appears to be a concurrent caching iterator running - cache lockfile already exists "
                f"('{path}'). If you are sure no other program is using this cache prefix, delete the "
                f"lockfile and re-initialize the iterator. Lockfile contents: {contents}",
            )
        write_string_to_file(path, f"Created at: {int(time.time())}")

    def _end_shard(self) -> None:
        assert self.writer is not None
        writer, self.writer = self.writer, None
        writer.finish()
        delete_file(self._lock_path)
        self.shard += 1

    def _finish(self) -> None:
        self._end_shard()
        shards = [self.dataset.shard(number) for number in range(self.shard)]
        merge_bundles(shards, self.dataset.prefix)
        self.has_ended = True

    def save(self) -> Any:
        if self.writer is not None and not self.has_ended:
            self._end_shard()
        return {"source": self.source.save(), "shard": self.shard, "written": self.written,
                "ended": self.has_ended}  # fmt: skip

    def restore(self, step: Any, state: Any) -> None:
        self.source.restore(step, state["source"])
        self.shard, self.written, self.has_ended = state["shard"], state["written"], state["ended"]

    def close(self) -> None:
        self.source.close()
        if self.writer is not None:
            self.writer.discard()
            self.writer = None
            with contextlib.suppress(errors.OpError):
                delete_file(self._lock_path)


# ---- ops


def _make_cache(node: Node, env: Environment) -> Callable[..., Dataset]:
    types = node.attributes["output_types"]

    def make(source: Dataset, filename: Any, cache: MemoryCache | None = None) -> Dataset:
        prefix = as_path(filename.item())
        return FileCachedDataset(source, prefix, types) if prefix else CachedDataset(source, cache)

    return make


_METADATA = "metadata: string = ''"
cache_dataset_op = dataset_op(
    "CacheDataset", "input_dataset: variant, filename: string", _make_cache, _METADATA
)
cache_dataset_v2_op = dataset_op(
    "CacheDatasetV2", "input_dataset: variant, filename: string, cache: resource", _make_cache, _METADATA,
    stateful=True, keeps=[2],
)  # fmt: skip


resource_op("AnonymousMemoryCache", SharedCache, has_deleter=True)
resource_op("DummyMemoryCache", SharedCache)
deleting_op("DeleteMemoryCache")
