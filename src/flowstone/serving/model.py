"""`Model`: the versions of a served model.

A folder with numbered folders below it (``half/1``, ``half/2``) is a model whose newest version is served; a
folder that is itself a SavedModel is the one version that its name says, or version 1. `refresh` looks once:
a newer version is loaded first, then answers; the older one ends when the last request that uses it is
answered.

What happens to a version is its `State`, TensorFlow Serving's: START, LOADING, AVAILABLE, UNLOADING, END. A
version that cannot be loaded ends with its error, is tried again at every look, and leaves the older one
serving.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flowstone.framework import errors
from flowstone.io.file_system import is_directory, list_directory
from flowstone.saved_model.loader import maybe_saved_model_directory
from flowstone.serving.servable import Servable

__all__ = ["Lease", "Model", "State", "VersionStatus", "default_name", "listed_versions"]


class State(enum.IntEnum):
    """Where a version is in its life; the numbers are those of the message ModelVersionStatus."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


class VersionStatus(NamedTuple):
    """A version's number, its state, and the error that ended it."""

    number: int
    state: State
    error: errors.OpError | None


class Lease(NamedTuple):
    """A version that stays loaded while it is used."""

    number: int
    servable: Servable


class _Version:
    def __init__(self) -> None:
        self.state = State.START
        self.error: errors.OpError | None = None
        self.servable: Servable | None = None
        self.users = 0


def listed_versions(folder: str) -> dict[int, str]:
    """The folders of a model's versions by number; empty where there is no model."""
    if maybe_saved_model_directory(folder):
        name = folder.rstrip("/").rpartition("/")[2]
        return {int(name) if _is_number(name) else 1: folder}
    if not is_directory(folder):
        return {}
    paths = {int(name): f"{folder.rstrip('/')}/{name}" for name in list_directory(folder) if _is_number(name)}
    return {number: path for number, path in paths.items() if maybe_saved_model_directory(path)}


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and int(name) < 2**63


def default_name(folder: str) -> str:
    """What a model is called if nobody says: its folder's name, without the version's."""
    parts = [part for part in folder.split("/") if part not in ("", ".", "..")]
    if len(parts) > 1 and _is_number(parts[-1]):
        parts.pop()
    return parts[-1] if parts else "model"


class Model:
    """A model's versions, of which at most the newest is served.

    Args:
        name: what requests call it.
        folder: where its versions are.
        load: makes the Servable of a version's folder.
        report: is called with a line for each thing that happens.
        signature_name: of requests that name none.
    """

    def __init__(
        self,
        name: str,
        folder: str,
        load: Callable[[str], Servable],
        report: Callable[[str], None] = lambda line: None,
        signature_name: str = "serving_default",
    ) -> None:
        self.name, self.signature_name = name, signature_name
        self._folder, self._load, self._report = folder, load, report
        self._lock = threading.Lock()
        self._versions: dict[int, _Version] = {}

    # ---- what requests ask

    @contextlib.contextmanager
    def lease(self, name: str, number: int | None = None) -> Iterator[Lease]:
        """The version of this number, or the newest, within the context. NotFoundError if it is not
        served."""
        with self._lock:
            chosen = self._available(name, number)
            version = self._versions[chosen]
            version.users += 1
            servable = version.servable
        assert servable is not None
        try:
            yield Lease(chosen, servable)
        finally:
            with self._lock:
                version.users -= 1
            self._end_if_unused(chosen, version)

    def statuses(self, name: str, number: int | None = None) -> list[VersionStatus]:
        """All versions that were ever met, the newest first, or one. NotFoundError if there is none."""
        with self._lock:
            chosen = [n for n in sorted(self._versions, reverse=True) if number in (None, n)]
            if name != self.name or not chosen:
                wanted = f" with version {number}" if number is not None else ""
                raise errors.NotFoundError(None, None, f"Could not find any versions of model {name}{wanted}")
            return [VersionStatus(n, self._versions[n].state, self._versions[n].error) for n in chosen]

    @property
    def is_available(self) -> bool:
        """Whether a version answers."""
        with self._lock:
            return any(version.state is State.AVAILABLE for version in self._versions.values())

    def _available(self, name: str, number: int | None) -> int:
        if name == self.name:
            found = [n for n, version in self._versions.items() if version.state is State.AVAILABLE]
            if number is not None:
                found = [n for n in found if n == number]
            if found:
                return max(found)
        wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
        raise errors.NotFoundError(None, None, f"Servable not found for request: {wanted}")

    # ---- versions come and go

    def refresh(self) -> None:
        """Looks at the folder once. If the newest version there is not served, loads it, then ends the
        others. What goes wrong is reported, and seen in `statuses`."""
        try:
            listed = listed_versions(self._folder)
        except (errors.OpError, OSError) as error:
            self._report(f"cannot list {self._folder}: {_text(error)}")
            return
        if not listed:
            return
        newest = max(listed)
        with self._lock:
            version = self._versions.setdefault(newest, _Version())
        if version.servable is None:
            self._try_to_load(newest, version, listed[newest])
        if version.state is State.AVAILABLE:
            self._retire(newest)

    def close(self) -> None:
        """Ends all versions, each when its last request is answered."""
        self._retire(None)

    def _try_to_load(self, number: int, version: _Version, folder: str) -> None:
        earlier = version.error
        version.state = State.LOADING
        try:
            servable = self._load(folder)
        except Exception as error:  # whatever a damaged model makes go wrong, the server goes on
            failure = _as_op_error(error)
            if earlier is None or earlier.message != failure.message:
                self._report(f"cannot load version {number} of {self.name}: {failure.message}")
            version.error, version.state = failure, State.END
            return
        with self._lock:
            version.error, version.servable, version.state = None, servable, State.AVAILABLE
        self._report(f"serving version {number} of {self.name} from {folder}")

    def _retire(self, kept: int | None) -> None:
        with self._lock:
            ending = [(n, v) for n, v in self._versions.items() if n != kept and v.state is State.AVAILABLE]
            for _, version in ending:
                version.state = State.UNLOADING
        for number, version in ending:
            self._end_if_unused(number, version)

    def _end_if_unused(self, number: int, version: _Version) -> None:
        with self._lock:
            if version.state is not State.UNLOADING or version.users or version.servable is None:
                return
            servable, version.servable = version.servable, None
            version.state = State.END
        servable.close()
        self._report(f"ended version {number} of {self.name}")


def _text(error: BaseException) -> str:
    return " ".join(str(getattr(error, "message", error)).split())


def _as_op_error(error: Exception) -> errors.OpError:
    if isinstance(error, errors.OpError):
        return error
    return errors.UnknownError(None, None, _text(error) or type(error).__name__)
