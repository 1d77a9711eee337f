"""The machine that steps run on: what the choice of a kernel asks of it.

Which of several kernels is fastest depends on the processor. Passes, kernels' factories and placement ask a
`Machine` (``env.machine``, ``subgraph.machine``, `current`). It answers from a `Profile`: numbers that were
measured on a kind of processor, or that suit all of them (`machine_profiles.py`), or that ``flowstone
calibrate`` found on this machine. Nothing is measured here, and none of it changes what a step computes. The
same profile gives the same plan. Which profile is taken:

1. what ``FLOWSTONE_MACHINE`` says: a profile's name, or a file that `save` wrote;
2. what ``flowstone calibrate`` kept for this processor, build of torch and number of threads;
3. the profile that was measured on this kind of processor, as its name or its features tell;
4. the generic one of its architecture, which takes ATen's own kernels unless another gains everywhere.

Limits that bound memory, or weigh Python's own work, do not depend on the machine: they stay where they are
used. Questions about products are about float32 on a host.

>>> machine = Machine(Profile("example", product_by_onednn=500_000, block_by_onednn=2_000_000))
>>> machine.prefers_onednn(100, 784, 10), machine.prefers_onednn(512, 512, 512)
(False, True)
>>> Machine(Profile("plain")).prefers_onednn(512, 512, 512)
False
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from flowstone.framework import flags
from flowstone.framework.machine import onednn
from flowstone.framework.machine.machine_profiles import NEVER, PROFILES, Profile, Tiles, Winograd, generic


class ProductKernel(NamedTuple):
    """How a product is computed: `transposed`, as (b' a')'; and whether by oneDNN instead of BLAS."""

    transposed: bool
    by_onednn: bool


_LONG = 512  # terms of each sum, from which oneDNN does not care how few the columns are
_SHORT = 64  # rows
_FEW_TERMS = 32  # of each sum; a product of so few is bound by memory
_BLAS_IS_ENOUGH = 16  # terms of each sum, up to which its accumulation is as fast as blocks


class Machine:
    """Answers the questions that choose kernels, from a `profile` and from what torch was built with."""

    __slots__ = ("has_onednn", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.has_onednn = onednn.is_available()

    # ---- calls and caches

    def repays(self, elements: int, calls: float = 1) -> bool:
        """Whether a pass over so many cached float32 elements takes as long as so many calls of kernels."""
        return elements >= self.elements(calls)

    def elements(self, calls: float) -> int:
        """How many cached float32 elements a kernel passes over in the time of so many calls."""
        return int(calls * self.profile.call_elements)

    def stays_cached(self, size: int) -> bool:
        """Whether kernels that follow one another on one core find a value of so many bytes in a cache."""
        return size <= self.profile.core_cache

    def exceeds_caches(self, size: int) -> bool:
        """Whether so many bytes are in no cache when they are read again."""
        return size >= self.profile.all_caches

    # ---- products of float32 [rows, terms] x [terms, columns]

    def multiplies_by_onednn(self) -> bool:
        """Whether oneDNN's large products are faster than those of the BLAS that torch calls."""
        return self.has_onednn and self.profile.product_by_onednn < NEVER

    def prefers_columns(self, rows: int, columns: int) -> bool:
        """Whether a matrix is better computed, and kept, column by column."""
        return columns <= self.profile.narrow_columns < rows

    def prefers_onednn(self, rows: int, terms: int, columns: int, transposed: bool = False) -> bool:
        """Whether oneDNN makes this product faster than BLAS; `transposed`: the first operand is."""
        profile = self.profile
        least = profile.transposed_by_onednn if transposed else profile.product_by_onednn
        if not transposed and rows >= _SHORT and not self.prefers_columns(rows, columns):
            least = profile.block_by_onednn
        is_large = rows > 1 and terms > 1 and rows * terms * columns >= least
        return is_large and self.multiplies_by_onednn()

    def product_kernel(self, rows: int, terms: int, columns: int, transposed: bool = False) -> ProductKernel:
        """The kernel that suits this product; see `prefers_onednn`."""
        if terms <= 1:
            return ProductKernel(False, False)
        by_onednn = self.prefers_onednn(rows, terms, columns, transposed)
        narrow = self.prefers_columns(rows, columns) and not (by_onednn and terms >= _LONG)
        narrow = narrow and (transposed or self.profile.narrow_plain)
        return ProductKernel(narrow, by_onednn)

    def adds_narrow_products(self, rows: int, terms: int, columns: int) -> bool:
        """Whether oneDNN makes a narrow product, transposed, and a pass adds it to a matrix, faster than BLAS
        accumulates it there."""
        if not self.prefers_columns(rows, columns) or not self.multiplies_by_onednn():
            return False
        enough = terms >= 2 * _FEW_TERMS and columns >= 4
        return enough and rows * terms * columns >= 1.5 * self.profile.product_by_onednn

    def accumulates_by_blas(self, rows: int, terms: int, columns: int) -> bool:
        """Whether BLAS's product is as fast as anything here, its accumulation counted as a gain."""
        if not self.multiplies_by_onednn():
            return True
        return terms <= _FEW_TERMS or rows * terms * columns < 10 * self.profile.product_by_onednn

    def rows_of_a_block(self, rows: int, terms: int, columns: int) -> int:
        """How many rows of a product to compute at a time where each is used up at once; 0: all.

        A block is small enough to be in a cache still when it is used, which pays for products that are not.
        """
        if not self.exceeds_caches(rows * columns * 4) or terms <= _BLAS_IS_ENOUGH:
            return 0
        if not self.multiplies_by_onednn():
            return 0
        return max(self.profile.narrow_columns, self.profile.core_cache // (columns * 4))

    def gains_by_packing(self, rows: int, terms: int, columns: int, transposed: bool) -> bool:
        """Whether weights [terms, columns] that nothing changes are read faster in oneDNN's own order;
        `transposed`: they are [columns, terms] in memory."""
        if not 1 <= rows <= self.profile.packed_rows or not self.has_onednn:
            return False
        if not self.packs(terms * columns, 2):
            return False
        return transposed or columns % self.profile.slow_columns == 0

    def packs(self, elements: int, rank: int) -> bool:
        """Whether weights of so many elements, a matrix (rank 2) or a filter (4), are large enough for it."""
        profile = self.profile
        return elements >= (profile.packed_weights if rank == 2 else profile.filter_elements)

    def stacks_by_columns(self, elements: int) -> bool:
        """Whether matrices of so many elements in all are stacked in the order that their product reads."""
        return self.repays(elements, 32)

    def looped_products(self, with_gradients: bool) -> int:
        """Multiplications of a product up to which loops with such ones are faster as machine code;
        `with_gradients`: where values are kept for these."""
        profile = self.profile
        return profile.looped_products_with_gradients if with_gradients else profile.looped_products

    def loop_threads(self) -> int:
        """How many threads may share the rows of a loop of machine code."""
        return torch.get_num_threads()

    # ---- convolutions and recurrent layers

    def convolves_by_onednn(self, multiplications: int) -> bool:
        """Whether oneDNN's own call of a float32 convolution pays, as opposed to ATen's."""
        return self.has_onednn and multiplications >= self.profile.convolution_by_onednn

    def spread_element(self, size: int) -> float:
        """What an element costs that a product of so many bytes in all adds to few results a position, in
        multiplications of a direct convolution."""
        profile = self.profile
        return profile.spread_element if size <= profile.spread_cache else profile.spread_uncached

    def runs_layers(self, cells: int, weights: int) -> bool:
        """Whether so many LSTM cells with the same weights, of so many elements, are faster as one kernel."""
        return self.has_onednn and cells >= self.profile.layer_cells and weights <= self.profile.layer_weights

    def runs_layers_by_products(self, weights: int, training: bool) -> bool:
        """Whether such a kernel is faster by BLAS's products than by oneDNN."""
        least = self.profile.layers_by_products
        return least < NEVER and (training or weights >= least)

    def __repr__(self) -> str:
        return f"<Machine '{self.profile.name}'>"


# ---- which machine this is


@functools.cache
def processor() -> str:
    """The processor's vendor, family and model where the system tells them, else its architecture."""
    told = _described()
    words = [told.get(key, "") for key in ("vendor_id", "cpu family", "model")]
    return " ".join(words) if all(words) else platform.machine().lower() or "unknown"


def processor_features() -> frozenset[str]:
    """The processor's features as the system names them (``avx512f``); empty where it does not tell."""
    return frozenset(_described().get("flags", "").split())


@functools.cache
def _described() -> dict[str, str]:
    """What the system says of the first processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return dict(_fields(lines))
    except OSError:
        return {}


def _fields(lines: Any) -> Iterator[tuple[str, str]]:
    """Those of the first processor."""
    for line in lines:
        if not line.strip():
            return
        key, _, value = line.partition(":")
        yield key.strip(), value.strip()


def calibration_file() -> Path:
    """Where the profile that ``flowstone calibrate`` finds is kept: by processor, torch and threads."""
    cache = os.path.expanduser(flags.CACHE)
    words = f"{processor()} {torch.__version__} {torch.get_num_threads()} threads"
    name = "".join(letter if letter.isalnum() or letter in ".+" else "-" for letter in words)
    return Path(cache) / "flowstone" / "machines" / f"{name}.json"


def save(profile: Profile, path: Path) -> None:
    """Writes a profile as JSON; OSError if that cannot be done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = profile._asdict()
    for key, value in record.items():
        if isinstance(value, (Tiles, Winograd)):
            record[key] = value._asdict()
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)


def load(path: Path) -> Profile:
    """The profile in a file that `save` wrote. ValueError, naming the file, if it is none; OSError."""
    try:
        record = json.loads(path.read_text())
        for key, kind in (("tiles", Tiles), ("winograd", Winograd), ("winograd_by_filter", Winograd)):
            if record.get(key) is not None:
                record[key] = kind(**record[key])
        for key in ("processors", "features"):
            record[key] = tuple(record.get(key, ()))
        profile = Profile(**record)
        for field, default in Profile("")._asdict().items():
            _check(field, getattr(profile, field), default)
        return profile
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a profile of a machine ({error}); `flowstone calibrate` writes one"
        ) from None


def _check(field: str, value: Any, default: Any) -> None:
    kinds: dict[type, Any] = {int: int, float: (int, float), bool: bool, str: str}
    wanted = kinds.get(type(default), object)
    if not isinstance(value, wanted) or isinstance(value, bool) is not (type(default) is bool):
        raise ValueError(f"{field} is {value!r}")


_current: list[Machine] = []


def current() -> Machine:
    """The machine that plans are made for; see the module for its profile."""
    if not _current:
        _current.append(Machine(_chosen()))
    return _current[-1]


@contextlib.contextmanager
def using(profile: Profile) -> Iterator[Machine]:
    """Within the context plans are made for a machine of this profile."""
    current()
    _current.append(Machine(profile))
    try:
        yield _current[-1]
    finally:
        _current.pop()


def _chosen() -> Profile:
    if flags.MACHINE:
        return _named(flags.MACHINE)
    try:
        return load(calibration_file())
    except OSError:
        pass
    return of_this_processor()


def of_this_processor() -> Profile:
    """The profile that was measured on this kind of processor, else the generic one."""
    kind, features = processor(), processor_features()
    measured = (
        profile
        for profile in PROFILES
        if any(f"{kind} ".startswith(f"{name} ") for name in profile.processors)
        and features.issuperset(profile.features)
    )
    return next(measured, generic())


def _named(name: str) -> Profile:
    known = {profile.name: profile for profile in PROFILES}
    if name in known:
        return known[name]
    try:
        return load(Path(name))
    except OSError:
        names = ", ".join(known)
        raise ValueError(f"FLOWSTONE_MACHINE={name!r} is neither a profile ({names}) nor a file") from None
