"""The entry of a program of open sizes (`open_sizes.py`): it takes the named ones from the arguments' shapes.

All arguments are compared with what these say of them; where one differs, or a named size is less than 2, the
other function does the work, as where an argument has another type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowstone.native.clusters.clusters import Array, Result
from flowstone.native.clusters.entry_points import TYPE_CODES, Entry
from flowstone.native.programs.open_sizes import definitions, is_open

__all__ = ["OpenEntry"]


class OpenEntry(Entry):
    """Writes the function of a program that has open sizes."""

    def __init__(
        self, name: str, inputs: Sequence[Array], outputs: Sequence[Result], may_overwrite: bool, *more: Any
    ) -> None:
        super().__init__(name, inputs, outputs, may_overwrite, *more)
        self._inputs, self._known = inputs, set[str]()
        named = [n for each in inputs for n in each.dims if is_open(n) and n.is_named]
        self._named = list(dict.fromkeys(named))
        self.lines[0] = f" %a = alloca [{len(inputs) + len(outputs) + 1 + len(self._named)} x ptr]"
        self.lines[1:1] = [
            f" %{word}{i} = alloca [{len(each.dims)} x i64]"
            for i, each in enumerate(outputs)
            for word in ("l", "k")
            if is_open(math.prod(each.dims))
        ]

    def constants(self) -> str:
        """The sizes and strides of the outputs that have no open ones."""
        outputs = self.outputs
        self.outputs = [Result(x.dtype, ()) if is_open(math.prod(x.dims)) else x for x in outputs]
        text = super().constants()
        self.outputs = outputs
        return text

    def take(self, i: int, array: Array) -> None:
        """Checks an argument, but for its sizes, and notes its address."""
        if not is_open(math.prod(array.dims)):
            super().take(i, array)
            return
        self.take_tensor(i)
        self.compare(i, "t", "aoti_torch_get_dtype", "%short", "i32", TYPE_CODES[array.dtype])
        self.compare(i, "c", "aoti_torch_is_contiguous", "%flag", "i8", 1)
        self.lines += [
            f" %d{i} = getelementptr ptr, ptr %a, i64 {i}",
            f" %x{i} = call i32 @aoti_torch_get_data_ptr(ptr %w{i}, ptr %d{i})",
        ]

    def note_size(self) -> None:
        """Takes the named sizes, and puts them where the program finds them; compares all others."""
        found: dict[Any, str] = {}
        others: list[tuple[str, Any]] = []
        for i, array in enumerate(self._inputs):
            if not is_open(math.prod(array.dims)):
                continue
            self.lines += [
                f" %zs{i} = call i32 @aoti_torch_get_sizes(ptr %w{i}, ptr %list)",
                f" %zp{i} = load ptr, ptr %list",
            ]
            for axis, size in enumerate(array.dims):
                own = f"%zl{i}_{axis}"
                self.lines.append(f" %za{i}_{axis} = getelementptr i64, ptr %zp{i}, i64 {axis}")
                self.lines.append(f" {own} = load i64, ptr %za{i}_{axis}")
                if size in self._named and size not in found:
                    found[size] = own
                else:
                    others.append((own, size))
        first = self.count + len(self.outputs) + self.first
        for j, named in enumerate(self._named):
            name = str(named)
            self._known.add(name)
            self.lines += [
                f" {name} = add i64 {found[named]}, 0",
                f" %zn{j} = icmp sge i64 {name}, 2",
                f" %zd{j} = getelementptr i64, ptr %a, i64 {first + j}",
                f" store i64 {name}, ptr %zd{j}",
            ]
            self.unless(f"%zn{j}")
        for j, (own, size) in enumerate(others):
            self._define(size)
            self.lines.append(f" %zq{j} = icmp eq i64 {own}, {size}")
            self.unless(f"%zq{j}")

    def _define(self, size: Any) -> None:
        if is_open(size):
            self.lines += definitions(str(size), self._known)

    def make(self, i: int, array: Result) -> None:
        """Makes a new tensor, and notes its address."""
        if not is_open(math.prod(array.dims)):
            super().make(i, array)
            return
        strides = [math.prod(array.dims[axis + 1 :]) for axis in range(len(array.dims))]
        for axis, (size, stride) in enumerate(zip(array.dims, strides)):
            for word, number in (("l", size), ("k", stride)):
                self._define(number)
                self.lines.append(f" %{word}a{i}_{axis} = getelementptr i64, ptr %{word}{i}, i64 {axis}")
                self.lines.append(f" store i64 {number}, ptr %{word}a{i}_{axis}")
        self.make_of(i, len(array.dims), array.dtype, f"%l{i}", f"%k{i}")
