"""Many matrices decomposed by LAPACK on a host, shared by a team (`lapack_code.py`), with ATen's results.

The code for a function is compiled when it is first called. Matrices are copied column after column, which is
the form that LAPACK takes, and overwrites; vectors are returned as views of what it wrote.
"""

from __future__ import annotations

import array
import functools
from collections.abc import Mapping

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.matrices.lapack_code import ARGUMENTS, WORDS, lapack_code

__all__ = ["MatrixBatches", "matrix_batches"]

_LETTERS = {torch.float32: "s", torch.float64: "d", torch.complex64: "c", torch.complex128: "z"}
_SMALL = 32  # rows
_EACH = 4  # matrices a thread, from which no thread waits long for another


class MatrixBatches:
    """Decompositions of tensors [..., m, n] of one type; see `fits`. None if LAPACK failed for a matrix."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._letter, self._dtype, self._real = _LETTERS[dtype], dtype, dtype.to_real()

    def fits(self, x: torch.Tensor) -> bool:
        """Whether there are matrices enough for a team, and work enough."""
        threads = torch.get_num_threads()
        if threads == 1 or x.ndim < 3 or not x.numel():
            return False
        count = x.numel() // (x.shape[-1] * x.shape[-2])
        work = x.numel() * min(x.shape[-2:])
        return count >= _EACH * threads and work >= machine.current().profile.native_team

    def eigh(self, x: torch.Tensor, has_vectors: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Eigenvalues of Hermitian matrices, real, and vectors."""
        size, a = x.shape[-1], _by_columns(x)
        w = torch.empty(len(a), size, dtype=self._real)
        sizes = {"jobz": ord("V" if has_vectors else "N"), "uplo": ord("L"), "n": size, "lda": size}
        name = self._letter + ("heevd" if self._dtype.is_complex else "syevd")
        if not _run(name, sizes, {"a": a, "w": w}, {}):
            return None
        return w.reshape(x.shape[:-1]), _matrices(a, x)

    def eig(self, x: torch.Tensor, has_vectors: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Eigenvalues, and vectors on the right, all complex."""
        size, a = x.shape[-1], _by_columns(x)
        vectors = torch.empty_like(a) if has_vectors else a
        job = ord("V" if has_vectors else "N")
        sizes = {"jobvl": ord("N"), "jobvr": job, "n": size, "lda": size, "ldvl": size, "ldvr": size}
        parts = {name: torch.empty(len(a), size, dtype=self._dtype) for name in self._values}
        more = {"rwork": 2 * size * self._real.itemsize}
        if size <= _SMALL:
            more["work"] = 4 * size * self._dtype.itemsize
        if not _run(f"{self._letter}geev", sizes, {"a": a, "vl": a, "vr": vectors, **parts}, more):
            return None
        values = parts["w"] if "w" in parts else torch.complex(parts["wr"], parts["wi"])
        if has_vectors and "wi" in parts:
            vectors = _complex_vectors(vectors, parts["wi"])
        return values.reshape(x.shape[:-1]), _matrices(vectors, x)

    @property
    def _values(self) -> list[str]:
        return ["w"] if self._dtype.is_complex else ["wr", "wi"]

    def svd(self, x: torch.Tensor, job: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """U, singular values and V^H."""
        rows, columns = x.shape[-2:]
        least, most = min(rows, columns), max(rows, columns)
        a = _by_columns(x)
        of_u, of_v = {"A": (rows, columns), "S": (least, least), "N": (0, 0)}[job]
        u, vt = a.new_empty(len(a), of_u, rows), a.new_empty(len(a), columns, of_v)
        s = torch.empty(len(a), least, dtype=self._real)
        sizes = {"jobz": ord(job), "m": rows, "n": columns, "lda": rows, "ldu": rows, "ldvt": max(of_v, 1)}
        reals = least * (5 * least + 7 + 2 * most + 2 * least)  # as LAPACK's documentation bounds it
        more = {"iwork": 8 * least * _WORD, "rwork": reals * self._real.itemsize}
        if not _run(f"{self._letter}gesdd", sizes, {"a": a, "s": s, "u": u, "vt": vt}, more):
            return None
        return _matrices(u, x), s.reshape(*x.shape[:-2], least), _matrices(vt, x)


_WORD = 4  # bytes of LAPACK's whole numbers


def _by_columns(x: torch.Tensor) -> torch.Tensor:
    """A copy [matrices, columns, rows] of matrices."""
    rows, columns = x.shape[-2:]
    return x.reshape(-1, rows, columns).mT.clone(memory_format=torch.contiguous_format)


def _matrices(by_columns: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The matrices of such an array, in the batch's shape."""
    return by_columns.reshape(*x.shape[:-2], *by_columns.shape[1:]).mT


def _complex_vectors(vectors: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
    """Complex vectors [matrices, vector, element] of real ones: of a pair of conjugate values the first
    stands for the real part of both, the second for the imaginary part of the first."""
    first, second = (imaginary > 0)[..., None], (imaginary < 0)[..., None]
    real = torch.where(second, vectors.roll(1, 1), vectors)
    turned = torch.where(second, -vectors, torch.zeros((), dtype=vectors.dtype))
    return torch.complex(real, torch.where(first, vectors.roll(-1, 1), turned))


def _run(
    name: str, sizes: Mapping[str, int], arrays: Mapping[str, torch.Tensor], more: Mapping[str, int]
) -> bool:
    """Calls LAPACK for each matrix; `more`: the bytes of scratch memory that it does not tell, or the least,
    which it solves small problems faster with."""
    bytes_of = {**_scratch(name, tuple(sizes.items()), arrays["a"].dtype), **more}
    threads = torch.get_num_threads()
    whole = {
        key: -(-size // 64) * 64 for key, size in bytes_of.items()
    }  # lines of the cache, for each thread
    scratch = {key: torch.empty(threads, size, dtype=torch.uint8) for key, size in whole.items()}
    info = torch.zeros(len(arrays["a"]), dtype=torch.int32)
    lengths = {f"l{key}": size // _itemsize(key, arrays["a"].dtype) for key, size in bytes_of.items()}
    _call(name, {**sizes, **lengths}, {**arrays, "info": info}, scratch, threads)
    return not bool(info.any())


@functools.cache
def _scratch(name: str, sizes: tuple[tuple[str, int], ...], dtype: torch.dtype) -> dict[str, int]:
    """The bytes of scratch memory that LAPACK wants where it can tell."""
    own = ARGUMENTS[name].split()
    asked = [key for key in ("work", "rwork", "iwork") if f"l{key}" in own]
    answers = {key: torch.zeros(1, dtype=_type_of(key, dtype)) for key in asked}
    others = {key: torch.zeros(1, 2, dtype=torch.complex128) for key in own if key not in asked}
    _call(name, {**dict(sizes), **{f"l{key}": -1 for key in asked}}, others, answers, 1)
    return {key: int(answers[key].real.item()) * _itemsize(key, dtype) for key in asked}


def _type_of(key: str, dtype: torch.dtype) -> torch.dtype:
    """The type of elements of scratch memory."""
    return {"work": dtype, "rwork": dtype.to_real(), "iwork": torch.int32}[key]


def _itemsize(key: str, dtype: torch.dtype) -> int:
    return _type_of(key, dtype).itemsize


def _call(
    name: str,
    sizes: Mapping[str, int],
    by_matrix: Mapping[str, torch.Tensor],
    by_thread: Mapping[str, torch.Tensor],
    threads: int,
) -> None:
    """Calls LAPACK for every matrix: the first dimension of what each has, and of what each thread has."""
    own = ARGUMENTS[name].split()
    numbers = array.array("i", sizes.values())
    start = numbers.buffer_info()[0]
    places: dict[str, torch.Tensor | int] = {key: start + _WORD * i for i, key in enumerate(sizes)}
    places |= {**{key: x for key, x in by_matrix.items() if key not in sizes}, **by_thread}
    words = {"threads": threads, "matrices": len(by_matrix["info"])}
    for step, arrays in (("matrix", by_matrix), ("thread", by_thread)):
        words |= {
            f"{step}{own.index(key)}": x.numel() // len(x) * x.itemsize
            for key, x in arrays.items()
            if key in own and key not in sizes
        }
    _library(name).call(name, words, places)


@functools.cache
def _library(name: str) -> CodeLibrary:
    return CodeLibrary(lambda: lapack_code(name), WORDS, {name: ARGUMENTS[name].split()})


def matrix_batches(dtype: torch.dtype | None) -> MatrixBatches | None:
    """What decomposes batches of a type; None if nothing does, or there is no native tier or no team."""
    if not flags.NATIVE or host.reason() or dtype not in _LETTERS:
        return None
    names = [name for name in ARGUMENTS if name.startswith(_LETTERS[dtype])]
    has_all = all(host.has(f"{name}_") for name in names) and host.has("GOMP_parallel")
    return MatrixBatches(dtype) if has_all else None
