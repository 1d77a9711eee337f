"""What this processor, this Python and this torch offer to machine code: vector width and addresses.

`reason()` says why there is no native tier here: an empty text where there is one. Then `lanes()` float32
numbers make up the vectors that are fastest, `symbols()` are the addresses that native code may call, and
`has(name)` tells of the optional ones among them. The tier needs CPython with its lock, llvmlite, and a torch
whose tensors are found where they were (`_check`): a Python object of a tensor holds, after its two words,
the handle that torch's stable C functions take.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import pathlib
import platform
import sys
from collections.abc import Iterator

import torch

from flowstone.framework import flags
from flowstone.framework.declarations.containers import Variable
from flowstone.native.codegen import llvm

__all__ = [
    "ALONE", "HANDLE_OFFSET", "features", "has", "has_halves", "is_x86", "lanes", "llvm_version", "reason",
    "symbols", "variable_offset",
]  # fmt: skip

HANDLE_OFFSET = 16
"""Bytes from a tensor's Python object to its handle."""
ALONE = ctypes.c_int64(0)
"""Whether the callers of teams do all parts of the work themselves (`parts.py`)."""

_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
_NEEDED = (
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_numel",
    "aoti_torch_get_dtype",
    "aoti_torch_is_contiguous",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_empty_strided",
    "aoti_torch_delete_tensor_object",
    _WRAP,
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_IncRef",
    "PyFloat_AsDouble",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
    "PyObject_CallMethod",
    "PyBytes_FromStringAndSize",
    "Py_DecRef",
    "realloc",
    "calloc",
    "free",
)
_OPTIONAL = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads", "gettid")
_LAPACK = tuple(
    f"{t}{name}_" for t in "sdcz" for name in ("syevd", "heevd", "geev", "gesdd")
)  # not all exist
_C_LIBRARY = ("exp", "fmod", "fmodf", "lgamma", "log", "log1p", "pow", "sin", "cos", "sincos")
_SLEEF = ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan")
_SLEEF_15 = ("erfc",)
_SLEEF_MORE = ("asinh", "acosh", "atanh", "erf", "pow", "atan2")


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    folder = pathlib.Path(torch.__file__).parent / "lib"
    names = [
        path
        for path in sorted(folder.glob("*"))
        if path.name.startswith(("libgomp", "libtorch_cpu.", "libtorch_python."))
    ]
    found: list[ctypes.CDLL] = []
    for path in names:
        try:
            found.append(ctypes.CDLL(str(path)))
        except OSError:
            continue
    return [*found, ctypes.pythonapi, ctypes.CDLL(None)]


def _address(name: str) -> int | None:
    for library in _libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


@functools.cache
def symbols() -> dict[str, int]:
    """The addresses of functions of torch and Python by their names, as far as they exist, and those of the
    types of tensors and variables and of None, ``flowstone_tensor_type`` …, and of `ALONE`."""
    names = [*_NEEDED, *_OPTIONAL, *_LAPACK, *_C_LIBRARY]
    for kind, width in (("f", lanes()), ("d", lanes() // 2)):
        names += [f"Sleef_{name}{kind}{width}_u10" for name in (*_SLEEF, *_SLEEF_MORE)]
        names += [f"Sleef_{name}{kind}{width}_u15" for name in _SLEEF_15]
    found = {name: address for name in names if (address := _address(name)) is not None}
    objects = {"tensor_type": torch.Tensor, "variable_type": Variable, "none": None}
    found.update({f"flowstone_{name}": id(each) for name, each in objects.items()})
    return {**found, "flowstone_alone": ctypes.addressof(ALONE)}


def has(name: str) -> bool:
    """Whether native code may call this function."""
    return name in symbols()


@functools.cache
def variable_offset() -> int:
    """Bytes from a variable to where it says what its tensor is; 0 if that was not found."""
    variable = Variable("")
    variable.tensor = torch.zeros(1)
    size = type(variable).__basicsize__
    words = (ctypes.c_int64 * (size // 8)).from_address(id(variable))
    found = [8 * i for i, word in enumerate(words) if word == id(variable.tensor)]
    del variable.tensor
    empty = [place for place in found if not words[place // 8]]
    return empty[0] if len(empty) == 1 else 0


@functools.cache
def llvm_version() -> str:
    """That of llvmlite; empty without it."""
    try:
        return importlib.metadata.version("llvmlite")
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def features() -> tuple[str, str]:
    """The processor's name and features, as LLVM calls them. LLVM is asked once for a kind of processor."""
    path = _features_file()
    if path is not None:
        with contextlib.suppress(OSError, ValueError):
            name, found = json.loads(path.read_text())
            return str(name), str(found)
    told = llvm.processor()
    if path is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(told))
            beside.replace(path)
    return told


def _features_file() -> pathlib.Path | None:
    """Where what LLVM said of such a processor is kept; None where the system does not describe it."""
    words = list(_described())
    if not words:
        return None
    name = hashlib.sha256("\0".join([llvm_version(), platform.machine(), *words]).encode()).hexdigest()
    return pathlib.Path(flags.CACHE).expanduser() / "flowstone" / "native" / f"{name[:40]}.json"


def _described() -> Iterator[str]:
    """What the system says of its first processor, but for its speed at the moment."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in itertools.takewhile(str.strip, lines):
            if "MHz" not in line and not line.startswith(("bogomips", "BogoMIPS")):
                yield line.strip()


def _told() -> list[str]:
    """What the processor can do, as the system tells, or else LLVM."""
    told = [line.split(":")[1].split() for line in _described() if line.startswith("flags")]
    return told[0] if told else features()[1].replace("+", "").split(",")


@functools.cache
def has_halves() -> bool:
    """Whether the processor converts float16 to float32 and back."""
    return "f16c" in _told()


@functools.cache
def is_x86() -> bool:
    """Whether it is a processor of Intel's kind."""
    return platform.machine() in ("x86_64", "AMD64")


@functools.cache
def lanes() -> int:
    """How many float32 numbers a vector has."""
    found = _told()
    if "avx512f" in found:
        return 16
    return 8 if "avx2" in found else 4


@functools.cache
def reason() -> str:
    """Why nothing can be compiled here; empty if it can."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "native code needs CPython with its global lock"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return "native code needs a little-endian processor of 64 bits"
    if importlib.util.find_spec("llvmlite") is None:
        return "the package llvmlite is not installed"
    missing = [name for name in _NEEDED if not has(name)]
    if missing:
        return f"this build of torch has no {missing[0]}"
    return _check()


def _check() -> str:
    """Whether a tensor's handle is where it is expected: what is found through it is what the tensor says."""
    tensor = torch.arange(6, dtype=torch.float32)
    get = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    read = get(symbols()["aoti_torch_get_numel"])
    size = object.__basicsize__
    if size != HANDLE_OFFSET or tensor.__sizeof__() < size + 8:
        return "objects of this Python have another layout"
    handle = ctypes.c_int64.from_address(id(tensor) + HANDLE_OFFSET).value
    if handle % 8 or handle == 0:
        return "tensors of this build of torch have another layout"
    count, place = ctypes.c_int64(), ctypes.c_int64()
    find = get(symbols()["aoti_torch_get_data_ptr"])
    if read(id(tensor) + HANDLE_OFFSET, ctypes.byref(count)) or count.value != 6:
        return "tensors of this build of torch have another layout"
    if find(id(tensor) + HANDLE_OFFSET, ctypes.byref(place)) or place.value != tensor.data_ptr():
        return "tensors of this build of torch have another layout"
    return ""
