"""h5py as version 2 was: text that can be decoded, files opened to be changed, `Dataset.value`.

Keras asks for `older_module`; a program that `flowstone run` runs has h5py itself behave so.
"""

from __future__ import annotations

import functools
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python.late_modules import complete

__all__ = ["install", "older_module"]


class Text(str):
    """Text that may be decoded, which leaves it as it is."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text."""
        return str(self)


class EmptyArray(np.ndarray):
    """An array without elements, which is false, as it was with NumPy 1."""

    def __bool__(self) -> bool:
        """False."""
        return False


def _decodable(value: Any) -> Any:
    """Text, alone or in an array, as `Text`, an empty array as one that is false; others as they are."""
    if type(value) is str:
        return Text(value)
    if isinstance(value, np.ndarray) and value.size == 0:
        return value.view(EmptyArray)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([_decodable(item) for item in value.flat], object).reshape(value.shape)
    return value


def _file_class(module: Any) -> type:
    """The class of files, which are opened for reading and writing unless a mode is given."""

    class File(module.File):  # type: ignore[misc]
        """A file, opened as h5py 2 did."""

        def __init__(self, name: Any, mode: str | None = None, *arguments: Any, **options: Any) -> None:
            by_number = isinstance(name, module.h5f.FileID)
            super().__init__(name, mode or ("r" if by_number else "a"), *arguments, **options)

    return File


@functools.cache
def older_module() -> ModuleType | None:
    """h5py with such files; None where it is not installed.

    In h5py itself, too, attributes that are text can be decoded then, and lists of bytes are stored as bytes
    of one length, which is what TensorFlow 1 reads.
    """
    if find_spec("h5py") is None:
        return None
    module: Any = import_module("h5py")
    _change_attributes(module.AttributeManager)
    if not hasattr(module.File, "fid"):
        module.File.fid = property(lambda file: file.id)
    if not hasattr(module.Dataset, "value"):
        module.Dataset.value = property(lambda dataset: dataset[()])
    made = ModuleType(module.__name__, module.__doc__)
    made.__dict__.update(vars(module), File=_file_class(module))
    return made


def _change_attributes(attributes: Any) -> None:
    get, put = attributes.__getitem__, attributes.__setitem__

    def get_decodable(self: Any, name: Any) -> Any:
        return _decodable(get(self, name))

    def put_bytes(self: Any, name: Any, value: Any) -> None:
        is_bytes = (
            isinstance(value, (list, tuple)) and value and all(isinstance(item, bytes) for item in value)
        )
        put(self, name, np.asarray(value) if is_bytes else value)

    attributes.__getitem__, attributes.__setitem__ = get_decodable, put_bytes


def _fill(module: ModuleType) -> None:
    older = older_module()
    assert older is not None
    module.__dict__["File"] = vars(older)["File"]


def install() -> None:
    """Has h5py behave so once a program imports it."""
    complete("h5py", _fill)
