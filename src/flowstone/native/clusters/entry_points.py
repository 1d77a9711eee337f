"""Functions of Python around machine code: built-ins that take tensors and return tensors.

``entry_code`` is the text of a function with CPython's fast calling convention. It looks whether each
argument is a tensor of the type, size and layout that the code is for; if one is not, it calls with the same
arguments what the built-in carries as its `self`, a function of Python that does the same. Results are a
tuple of new tensors, of which the first may be the argument that is overwritten. Functions that differ in
this alone share their text, which takes LLVM as long as the loops do.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.native.clusters.clusters import OPEN, Array, Result
from flowstone.native.codegen import host
from flowstone.native.codegen.compiler import Module

__all__ = ["DECLARATIONS", "TYPE_CODES", "Entry", "builtin", "entry_code", "overwriting"]

TYPE_CODES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "bool": 11,
}
_CPU = 0
_METH_FASTCALL = 0x80
_ARGUMENTS = "ptr %self, ptr %args, i64 %n"
_NOWHERE = -1
_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
DECLARATIONS = {
    "aoti_torch_get_data_ptr": "declare i32 @aoti_torch_get_data_ptr(ptr, ptr)",
    "aoti_torch_get_numel": "declare i32 @aoti_torch_get_numel(ptr, ptr)",
    "aoti_torch_get_dtype": "declare i32 @aoti_torch_get_dtype(ptr, ptr)",
    "aoti_torch_get_sizes": "declare i32 @aoti_torch_get_sizes(ptr, ptr)",
    "aoti_torch_get_strides": "declare i32 @aoti_torch_get_strides(ptr, ptr)",
    "aoti_torch_is_contiguous": "declare i32 @aoti_torch_is_contiguous(ptr, ptr)",
    "aoti_torch_empty_strided": "declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)",
    "aoti_torch_delete_tensor_object": "declare i32 @aoti_torch_delete_tensor_object(ptr)",
    _WRAP: f"declare ptr @{_WRAP}(ptr)",
    "PyObject_Vectorcall": "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "PyTuple_New": "declare ptr @PyTuple_New(i64)",
    "PyTuple_SetItem": "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "PyEval_SaveThread": "declare ptr @PyEval_SaveThread()",
    "PyEval_RestoreThread": "declare void @PyEval_RestoreThread(ptr)",
    "Py_IncRef": "declare void @Py_IncRef(ptr)",
    "flowstone_tensor_type": "@flowstone_tensor_type = external global i8",
}


def overwriting(i: int) -> str:
    """The name of the function whose first output overwrites input i."""
    return f"over{i}"


def entry_code(
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array | Result],
    overwritten: Sequence[int],
    frees_lock: bool,
    declarations: dict[str, str],
    checks: bool = False,
    may_fail: bool = False,
    has_step: bool = False,
    lead: tuple[int, ...] = (OPEN,),
    kind: type[Entry] | None = None,
) -> str:
    """The text of the function `name`, which calls ``run`` with the addresses of the inputs and outputs.

    `overwritten`: the inputs that may also be the first output; a function more for each, named by
    `overwriting`. `frees_lock`: other threads of Python may run meanwhile. `checks`: only if ``within`` of
    the inputs' addresses is true. `may_fail`: ``run`` returns 0, or 1 to have the other function do the work,
    or 2 if it has set an exception. `has_step`: a step is the first argument, whose address comes after those
    of the outputs. `lead`: the dimensions of arguments and results that an open one stands for. `kind`: the
    class that writes it, if some sizes are open otherwise.
    """
    declarations.update(DECLARATIONS)
    results = [Result(*each[:2], isinstance(each, Result) and each.transposed) for each in outputs]
    writer = (kind or Entry)(name, inputs, results, bool(overwritten), has_step, lead)
    for i, array in enumerate(inputs):
        writer.take(i, array)
    writer.note_size()
    if checks:
        writer.lines.append(" %within = call i1 @within(ptr %a)")
        writer.unless("%within")
    for i, result in enumerate(results):
        writer.make_or_take(i, result)
    writer.run(frees_lock, may_fail)
    writer.give()
    if may_fail:
        writer.clean_up()
    body = "\n".join(writer.lines)
    head = f"define ptr @{name}({_ARGUMENTS})"
    names: dict[str, int] = {}
    if overwritten:
        head = f"define internal ptr @any({_ARGUMENTS}, i64 %into)"
        names = {name: _NOWHERE, **{overwriting(i): i for i in overwritten}}
    other = f"other:\n %fallback = call ptr @PyObject_Vectorcall({_ARGUMENTS}, ptr null)"
    functions = [
        f"define ptr @{each}({_ARGUMENTS}) {{\n"
        f" %result = tail call ptr @any({_ARGUMENTS}, i64 {into})\n ret ptr %result\n}}"
        for each, into in names.items()
    ]
    text = f"{writer.constants()}\n{head} {{\nentry:\n{body}\n{other}\n ret ptr %fallback\n}}"
    return "\n".join([text, *functions])


class Entry:
    """Writes the function: its lines so far."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[Array],
        outputs: Sequence[Result],
        may_overwrite: bool,
        has_step: bool,
        lead: tuple[int, ...],
    ) -> None:
        self.lead, self.leading = lead, list[str]()  # the names of these sizes
        self.name, self.count, self.outputs, self.may_overwrite = name, len(inputs), outputs, may_overwrite
        self.first = 1 if has_step else 0  # the place of the first input among the arguments
        self.pitched = [i for i, array in enumerate(inputs) if array.pitched]
        self.lines = [
            f" %a = alloca [{len(inputs) + len(outputs) + len(self.pitched) + 1} x ptr]",
            " %long = alloca i64",
            " %short = alloca i32",
            " %flag = alloca i8",
            " %list = alloca ptr",
            *[f" %h{i} = alloca ptr" for i in range(len(outputs))],
            *[
                f" %{word}{i} = alloca [{len(each.dims) + len(lead) - 1} x i64]"
                for i, each in enumerate(outputs)
                for word in ("l", "k")
                if each.dims[:1] == (OPEN,)
            ],
        ]
        self.blocks = 0
        self.size = ""  # the name of the open size
        if has_step:
            self.lines.append(" %step = load ptr, ptr %args")
            self.lines.append(f" %steps = getelementptr ptr, ptr %a, i64 {len(inputs) + len(outputs)}")
            self.lines.append(" store ptr %step, ptr %steps")

    def constants(self) -> str:
        """The sizes and strides of the outputs."""
        lines = []
        for i, array in enumerate(self.outputs):
            strides = [math.prod(array.dims[j + 1 :]) for j in range(len(array.dims))]
            if array.transposed:
                strides = [1, array.dims[0]]
            for word, numbers in (("sizes", array.dims), ("strides", strides)):
                content = ", ".join([f"i64 {number}" for number in numbers])
                lines.append(f"@{self.name}_{word}{i} = internal constant [{len(numbers)} x i64] [{content}]")
        return "\n".join(lines)

    def unless(self, condition: str) -> None:
        """Goes on if the condition holds; else the other function does the work."""
        self.blocks += 1
        self.lines += [f" br i1 {condition}, label %go{self.blocks}, label %other", f"go{self.blocks}:"]

    def take(self, i: int, array: Array) -> None:
        """Checks an argument, and notes its address."""
        add = self.lines.append
        self.take_tensor(i)
        self.compare(i, "n", "aoti_torch_get_numel", "%long", "i64", self.elements(i, array.dims))
        self.compare(i, "t", "aoti_torch_get_dtype", "%short", "i32", TYPE_CODES[array.dtype])
        if array.pitched:
            self.take_pitch(i, array.dims)
        elif array.strides:
            self.compare_strides(i, array)
        elif math.prod(array.dims) not in (0, 1):
            self.compare(i, "c", "aoti_torch_is_contiguous", "%flag", "i8", 1)
        add(f" %d{i} = getelementptr ptr, ptr %a, i64 {i}")
        add(f" %x{i} = call i32 @aoti_torch_get_data_ptr(ptr %w{i}, ptr %d{i})")

    def take_tensor(self, i: int) -> None:
        """Checks that an argument is a tensor, and notes its handle."""
        add = self.lines.append
        add(f" %p{i} = getelementptr ptr, ptr %args, i64 {self.first + i}")
        add(f" %o{i} = load ptr, ptr %p{i}")
        add(f" %y{i} = getelementptr i8, ptr %o{i}, i64 8")
        add(f" %z{i} = load ptr, ptr %y{i}")
        add(f" %is{i} = icmp eq ptr %z{i}, @flowstone_tensor_type")
        self.unless(f"%is{i}")
        add(f" %w{i} = getelementptr i8, ptr %o{i}, i64 {host.HANDLE_OFFSET}")

    def elements(self, i: int, dims: tuple[int, ...]) -> str:
        """How many elements argument i is to have; the first open one tells the open size."""
        count = abs(math.prod(dims))
        if dims[:1] != (OPEN,):
            return str(count)
        if not self.size:
            self.leading = self.leading_sizes(i)
            self.size = self.leading[0]
            for axis, size in enumerate(self.leading[1:], 1):
                self.lines.append(f" %zm{axis} = mul i64 {self.size}, {size}")
                self.size = f"%zm{axis}"
            self.lines.append(f" %some = icmp sgt i64 {self.size}, 0")
            self.unless("%some")
        elif len(self.lead) > 1:
            for axis, size in enumerate(self.leading_sizes(i)):
                if self.lead[axis] == OPEN:
                    self.lines.append(f" %zq{i}_{axis} = icmp eq i64 {size}, {self.leading[axis]}")
                    self.unless(f"%zq{i}_{axis}")
        self.lines.append(f" %zn{i} = mul i64 {self.size}, {count}")
        return f"%zn{i}"

    def leading_sizes(self, i: int) -> list[str]:
        """The sizes of argument i that an open one stands for."""
        self.lines += [
            f" %zs{i} = call i32 @aoti_torch_get_sizes(ptr %w{i}, ptr %list)",
            f" %zp{i} = load ptr, ptr %list",
        ]
        for axis, size in enumerate(self.lead):
            if size == OPEN:
                self.lines.append(f" %za{i}_{axis} = getelementptr i64, ptr %zp{i}, i64 {axis}")
                self.lines.append(f" %zl{i}_{axis} = load i64, ptr %za{i}_{axis}")
        return [f"%zl{i}_{axis}" if size == OPEN else str(size) for axis, size in enumerate(self.lead)]

    def note_size(self) -> None:
        """Puts the open size where the loops find it."""
        if self.size:
            place = self.count + len(self.outputs) + len(self.pitched)
            self.lines.append(f" %zd = getelementptr i64, ptr %a, i64 {place}")
            self.lines.append(f" store i64 {self.size}, ptr %zd")

    def take_pitch(self, i: int, dims: tuple[int, ...]) -> None:
        """Checks that an argument's rows are whole and equally far from each other; notes how far."""
        self.lines.append(f" %sx{i} = call i32 @aoti_torch_get_strides(ptr %w{i}, ptr %list)")
        self.lines.append(f" %st{i} = load ptr, ptr %list")
        place = self.count + len(self.outputs) + self.pitched.index(i)
        known, size = "", 1
        for axis in range(len(dims) - 1, -1, -1):
            if dims[axis] == 1 and axis < len(dims) - 1:
                continue
            n = f"{i}_{axis}"
            self.lines.append(f" %sa{n} = getelementptr i64, ptr %st{i}, i64 {axis}")
            self.lines.append(f" %sv{n} = load i64, ptr %sa{n}")
            if axis == len(dims) - 1:
                self.lines.append(f" %sq{n} = icmp eq i64 %sv{n}, 1")
            elif not known:
                known, size = f"%sv{n}", dims[axis]
                self.lines.append(f" %pd{i} = getelementptr i64, ptr %a, i64 {place}")
                self.lines.append(f" store i64 {known}, ptr %pd{i}")
                continue
            else:
                self.lines.append(f" %sm{n} = mul i64 {known}, {size}")
                self.lines.append(f" %sq{n} = icmp eq i64 %sv{n}, %sm{n}")
                size *= dims[axis]
            self.unless(f"%sq{n}")

    def compare_strides(self, i: int, array: Array) -> None:
        """Checks how far from each other an argument's neighbours along each dimension are."""
        self.lines.append(f" %sx{i} = call i32 @aoti_torch_get_strides(ptr %w{i}, ptr %list)")
        self.lines.append(f" %st{i} = load ptr, ptr %list")
        for axis, (size, stride) in enumerate(zip(array.dims, array.strides)):
            if size != 1:
                n = f"{i}_{axis}"
                self.lines.append(f" %sa{n} = getelementptr i64, ptr %st{i}, i64 {axis}")
                self.lines.append(f" %sv{n} = load i64, ptr %sa{n}")
                self.lines.append(f" %sq{n} = icmp eq i64 %sv{n}, {stride}")
                self.unless(f"%sq{n}")

    def compare(self, i: int, letter: str, function: str, place: str, kind: str, expected: int | str) -> None:
        """Checks that what a function says of argument i is what is expected."""
        self.lines += [
            f" %{letter}e{i} = call i32 @{function}(ptr %w{i}, ptr {place})",
            f" %{letter}v{i} = load {kind}, ptr {place}",
            f" %{letter}q{i} = icmp eq {kind} %{letter}v{i}, {expected}",
        ]
        self.unless(f"%{letter}q{i}")

    def make_or_take(self, i: int, array: Result) -> None:
        """Notes the address of an output: of a new tensor, or of the argument that the first overwrites."""
        if i or not self.may_overwrite:
            self.make(i, array)
            return
        self.lines += [
            f" %is_new = icmp eq i64 %into, {_NOWHERE}",
            " br i1 %is_new, label %fresh, label %taken",
            "taken:",
            " %tp = getelementptr ptr, ptr %a, i64 %into",
            " %tx = load ptr, ptr %tp",
            f" %td = getelementptr ptr, ptr %a, i64 {self.count}",
            " store ptr %tx, ptr %td",
            " br label %ready",
            "fresh:",
        ]
        self.make(i, array)
        self.lines += [" br label %ready", "ready:"]

    def make(self, i: int, array: Result) -> None:
        """Makes a new tensor, and notes its address."""
        rank, sizes, strides = len(array.dims), f"@{self.name}_sizes{i}", f"@{self.name}_strides{i}"
        if array.dims[:1] == (OPEN,):
            rank, sizes, strides = rank + len(self.lead) - 1, f"%l{i}", f"%k{i}"
            self.lay_out(i, [*self.leading, *array.dims[1:]])
        self.make_of(i, rank, array.dtype, sizes, strides)

    def make_of(self, i: int, rank: int, dtype: str, sizes: str, strides: str) -> None:
        """The same of sizes and strides that lie there."""
        self.lines += [
            f" %me{i} = call i32 @aoti_torch_empty_strided(i64 {rank}, ptr {sizes}, "
            f"ptr {strides}, i32 {TYPE_CODES[dtype]}, i32 {_CPU}, i32 -1, ptr %h{i})",
            f" %mq{i} = icmp eq i32 %me{i}, 0",
        ]
        self.unless(f"%mq{i}")
        self.lines += [
            f" %mh{i} = load ptr, ptr %h{i}",
            f" %md{i} = getelementptr ptr, ptr %a, i64 {self.count + i}",
            f" %mx{i} = call i32 @aoti_torch_get_data_ptr(ptr %mh{i}, ptr %md{i})",
        ]

    def lay_out(self, i: int, sizes: Sequence[str | int]) -> None:
        """Writes down the sizes and strides of an output that the step knows."""
        stride: str | int = 1
        for axis in range(len(sizes) - 1, -1, -1):
            for word, number in (("l", sizes[axis]), ("k", stride)):
                self.lines.append(f" %{word}a{i}_{axis} = getelementptr i64, ptr %{word}{i}, i64 {axis}")
                self.lines.append(f" store i64 {number}, ptr %{word}a{i}_{axis}")
            self.lines.append(f" %kn{i}_{axis} = mul i64 {stride}, {sizes[axis]}")
            stride = f"%kn{i}_{axis}"

    def run(self, frees_lock: bool, may_fail: bool) -> None:
        if frees_lock:
            self.lines.append(" %state = call ptr @PyEval_SaveThread()")
        self.lines.append(" %code = call i32 @run(ptr %a)" if may_fail else " call void @run(ptr %a)")
        if frees_lock:
            self.lines.append(" call void @PyEval_RestoreThread(ptr %state)")
        if may_fail:
            self.lines += [
                " %ran = icmp eq i32 %code, 0",
                " br i1 %ran, label %results, label %failed",
                "results:",
            ]

    def clean_up(self) -> None:
        """What follows where ``run`` failed, which has new outputs alone."""
        self.lines.append("failed:")
        for i in range(len(self.outputs)):
            self.lines.append(f" %fd{i} = call i32 @aoti_torch_delete_tensor_object(ptr %mh{i})")
        self.lines += [
            " %raised = icmp eq i32 %code, 2",
            " br i1 %raised, label %raise, label %other",
            "raise:",
            " ret ptr null",
        ]

    def give(self) -> None:
        """Returns the tuple of outputs."""
        for i in range(len(self.outputs)):
            self.wrap_or_keep(i)
        self.lines.append(f" %tuple = call ptr @PyTuple_New(i64 {len(self.outputs)})")
        for i in range(len(self.outputs)):
            self.lines.append(f" %ts{i} = call i32 @PyTuple_SetItem(ptr %tuple, i64 {i}, ptr %r{i})")
        self.lines.append(" ret ptr %tuple")

    def wrap_or_keep(self, i: int) -> None:
        """Makes an output Python's: the first may be an argument, which is that already."""
        if i or not self.may_overwrite:
            self.wrap(f"%r{i}", i)
            return
        self.lines += [
            " br i1 %is_new, label %wraps, label %keeps",
            "keeps:",
            f" %kp = getelementptr ptr, ptr %args, i64 {self.first}",
            " %ka = getelementptr ptr, ptr %kp, i64 %into",
            " %ko = load ptr, ptr %ka",
            " call void @Py_IncRef(ptr %ko)",
            " br label %given",
            "wraps:",
        ]
        self.wrap("%rn", i)
        self.lines += [" br label %given", "given:", " %r0 = phi ptr [ %ko, %keeps ], [ %rn, %wraps ]"]

    def wrap(self, name: str, i: int) -> None:
        """Makes Python's object of a new tensor."""
        self.lines += [
            f" %rh{i} = load ptr, ptr %h{i}",
            f" {name} = call ptr @{_WRAP}(ptr %rh{i})",
            f" %rd{i} = call i32 @aoti_torch_delete_tensor_object(ptr %rh{i})",
        ]


class _Definition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("document", ctypes.c_char_p),
    )


_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]


def builtin(name: str, module: Module, entry: str, other: Callable[..., Any]) -> Callable[..., Any]:
    """The function of Python whose code is the function `entry` of a module, which stays loaded as long as
    the function of Python lives; `other` is what it calls for arguments that the code is not for."""
    definition = _Definition(name.encode(), module.address(entry), _METH_FASTCALL, None)
    kept = (definition, module)  # as the function's `__module__`, which may be any object
    return _new(ctypes.addressof(definition), other, kept)  # type: ignore[no-any-return]
