"""Products of a sparse matrix and a dense one in machine code: a pass over the sparse elements.

Each element adds its multiple of a row of the dense matrix to a row of the result. Threads share the
elements, if they are in the order of the result's rows, which the code sees as it goes; else one thread takes
all. The code for a type of values and of indices is compiled on a thread when a plan first asks
(`sparse_product`); what is called before it is there waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from flowstone.framework import flags
from flowstone.framework.machine_code import SparseProduct, offer_sparse_product
from flowstone.native import host
from flowstone.native.code_library import CodeLibrary

__all__ = ["offer", "sparse_product"]

_VALUES = {torch.float32: ("float", 4), torch.float64: ("double", 8)}
_INDICES = {torch.int32: "i32", torch.int64: "i64"}
_WORDS = ("threads", "count", "height", "inner", "columns", "row", "column")
_PLACES = ("indices", "values", "dense", "result", "notes")
_TEAM_TERMS = 50_000  # products of two numbers from which a team of threads pays
_NONE = -1


def sparse_product(values: torch.dtype, indices: torch.dtype) -> SparseProduct | None:
    """The function for these types; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or values not in _VALUES or indices not in _INDICES:
        return None
    return functools.partial(_product, _library(values, indices))


def offer() -> None:
    """Has the kernels of sparse tensors ask `sparse_product`."""
    offer_sparse_product(sparse_product)


@functools.cache
def _library(values: torch.dtype, indices: torch.dtype) -> CodeLibrary:
    return CodeLibrary(lambda: product_text(values, indices), _WORDS, {"multiply": _PLACES})


def _product(
    library: CodeLibrary,
    indices: torch.Tensor,
    values: torch.Tensor,
    dense: torch.Tensor,
    height: int,
    adjoint: bool,
) -> torch.Tensor | None:
    indices, values, dense = indices.contiguous(), values.contiguous(), dense.contiguous()
    inner, columns = dense.shape
    terms = len(values) * columns
    notes = torch.full((2,), _NONE)
    words = {
        "threads": torch.get_num_threads() if terms >= _TEAM_TERMS else 1, "count": len(values),
        "height": height, "inner": inner, "columns": columns, "row": int(adjoint), "column": int(not adjoint),
    }  # fmt: skip
    result = torch.zeros((height, columns), dtype=values.dtype)
    places = {"indices": indices, "values": values, "dense": dense, "result": result, "notes": notes}
    library.call("multiply", words, places)
    wrong, is_unordered = notes.tolist()
    if wrong == _NONE and is_unordered != _NONE and words["threads"] > 1:
        result.zero_()
        library.call("multiply", words | {"threads": 1}, places)
        wrong = int(notes[0])
    return result if wrong == _NONE else None


def product_text(values: torch.dtype, indices: torch.dtype) -> str:
    """LLVM's text of ``multiply``: of the five arrays of `_PLACES` and the numbers of `_WORDS`.

    `notes` gets the place of an element that is out of bounds, and of one that lies before its predecessor's
    row; they stay as they are if there is none.
    """
    (kind, size), index = _VALUES[values], _INDICES[indices]
    lanes = host.lanes() * 4 // size
    wide = f"<{lanes} x {kind}>"
    parallel = host.has("GOMP_parallel")
    return "\n".join(
        [
            f"declare {kind} @llvm.fma.{_suffix(kind)}({kind}, {kind}, {kind})",
            f"declare {wide} @llvm.fma.v{lanes}{_suffix(kind)}({wide}, {wide}, {wide})",
            *(_TEAM_DECLARATIONS if parallel else ()),
            _some(kind, wide, lanes, size, index, parallel),
            "define void @multiply(ptr %a) nounwind {",
            *(_TEAM_CALL if parallel else (" call void @multiply_some(ptr %a)",)),
            " ret void\n}",
        ]
    )


def _suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64"}[kind]


_TEAM_DECLARATIONS = (
    "declare void @GOMP_parallel(ptr, ptr, i32, i32)",
    "declare i32 @omp_get_thread_num()",
    "declare i32 @omp_get_num_threads()",
)
_TEAM_CALL = (
    " %words = load ptr, ptr %a",
    " %threads = load i64, ptr %words",
    " %team = trunc i64 %threads to i32",
    " call void @GOMP_parallel(ptr @multiply_some, ptr %a, i32 %team, i32 0)",
)


def _some(kind: str, wide: str, lanes: int, size: int, index: str, parallel: bool) -> str:
    """A thread's part: elements from the first of a row to the last of another one."""
    lines: list[str] = []
    do: Callable[[str], None] = lambda line: lines.append(f" {line}")  # noqa: E731
    label: Callable[[str], None] = lambda name: lines.append(f"{name}:")  # noqa: E731
    do("%words = load ptr, ptr %a")
    for i, place in enumerate(_PLACES, 1):
        do(f"%at_{place} = getelementptr ptr, ptr %a, i64 {i}")
        do(f"%{place} = load ptr, ptr %at_{place}")
    for i, word in enumerate(_WORDS):
        do(f"%at_{word} = getelementptr i64, ptr %words, i64 {i}")
        do(f"%{word} = load i64, ptr %at_{word}")
    if parallel:
        do("%me32 = call i32 @omp_get_thread_num()")
        do("%all32 = call i32 @omp_get_num_threads()")
        do("%me = zext i32 %me32 to i64")
        do("%all = zext i32 %all32 to i64")
    else:
        do("%me = add i64 0, 0")
        do("%all = add i64 0, 1")
    do("%after_me = add i64 %me, 1")
    for name, number in (("start", "%me"), ("end", "%after_me")):
        do(f"%{name}_times = mul i64 {number}, %count")
        do(f"%{name}_about = udiv i64 %{name}_times, %all")
        do(f"%{name} = call i64 @first_of_row(ptr %indices, i64 %row, i64 %{name}_about, i64 %count)")
    whole = ~(lanes - 1)
    do(f"%in_vectors = and i64 %columns, {whole}")
    do("%earlier = call i64 @row_before(ptr %indices, i64 %row, i64 %start)")
    do("br label %head")
    label("head")
    do("%e = phi i64 [ %start, %0 ], [ %next, %done ]")
    do("%before = phi i64 [ %earlier, %0 ], [ %i, %done ]")
    do("%more = icmp ult i64 %e, %end")
    do("br i1 %more, label %element, label %out")
    label("element")
    do("%pair = shl i64 %e, 1")
    for name, part in (("i", "row"), ("j", "column")):
        do(f"%{name}_at = add i64 %pair, %{part}")
        do(f"%{name}_place = getelementptr {index}, ptr %indices, i64 %{name}_at")
        do(f"%{name}{'' if index == 'i64' else '32'} = load {index}, ptr %{name}_place")
        if index == "i32":
            do(f"%{name} = sext i32 %{name}32 to i64")
    do("%i_fits = icmp ult i64 %i, %height")
    do("%j_fits = icmp ult i64 %j, %inner")
    do("%fits = and i1 %i_fits, %j_fits")
    do("br i1 %fits, label %ordered, label %wrong")
    label("wrong")
    do("store i64 %e, ptr %notes")
    do("ret void")
    label("ordered")
    do("%falls = icmp ult i64 %i, %before")
    do("br i1 %falls, label %unordered, label %multiply")
    label("unordered")
    do("%second = getelementptr i64, ptr %notes, i64 1")
    do("store i64 %e, ptr %second")
    do("br label %multiply")
    label("multiply")
    do(f"%x_at = getelementptr {kind}, ptr %values, i64 %e")
    do(f"%x = load {kind}, ptr %x_at")
    for name, base in (("i", "result"), ("j", "dense")):
        do(f"%{name}_first = mul i64 %{name}, %columns")
        do(f"%{name}_row = getelementptr {kind}, ptr %{base}, i64 %{name}_first")
    do(f"%x_one = insertelement {wide} poison, {kind} %x, i32 0")
    do(f"%x_all = shufflevector {wide} %x_one, {wide} poison, <{lanes} x i32> zeroinitializer")
    do("br label %wide")
    label("wide")
    do("%n = phi i64 [ 0, %multiply ], [ %n_next, %wide_body ]")
    do("%n_more = icmp ult i64 %n, %in_vectors")
    do("br i1 %n_more, label %wide_body, label %narrow")
    label("wide_body")
    _add(do, "w", kind, wide, "%n", "%x_all", f"v{lanes}{_suffix(kind)}", size)
    do(f"%n_next = add i64 %n, {lanes}")
    do("br label %wide")
    label("narrow")
    do("%m = phi i64 [ %in_vectors, %wide ], [ %m_next, %narrow_body ]")
    do("%m_more = icmp ult i64 %m, %columns")
    do("br i1 %m_more, label %narrow_body, label %done")
    label("narrow_body")
    _add(do, "s", kind, kind, "%m", "%x", _suffix(kind), size)
    do("%m_next = add i64 %m, 1")
    do("br label %narrow")
    label("done")
    do("%next = add i64 %e, 1")
    do("br label %head")
    label("out")
    do("ret void")
    wide_row = "%own" if index == "i64" else "%wide"
    widened = "" if index == "i64" else "%wide = sext i32 %own to i64"
    searches = _SEARCHES.format(index=index, widened=widened, row=wide_row)
    head = "define internal void @multiply_some(ptr %a) nounwind {"
    return "\n".join([searches, head, *lines, "}"])


def _add(
    do: Callable[[str], None], prefix: str, kind: str, wide: str, at: str, x: str, suffix: str, size: int
) -> None:
    """Adds the multiple of some columns."""
    for name in ("i", "j"):
        do(f"%{prefix}{name}_place = getelementptr {kind}, ptr %{name}_row, i64 {at}")
        do(f"%{prefix}{name} = load {wide}, ptr %{prefix}{name}_place, align {size}")
    do(f"%{prefix}_sum = call {wide} @llvm.fma.{suffix}({wide} {x}, {wide} %{prefix}j, {wide} %{prefix}i)")
    do(f"store {wide} %{prefix}_sum, ptr %{prefix}i_place, align {size}")


_SEARCHES = """
define internal i64 @row_before(ptr %indices, i64 %row, i64 %e) nounwind {{
 %begins = icmp eq i64 %e, 0
 br i1 %begins, label %none, label %some
some:
 %previous = sub i64 %e, 1
 %pair = shl i64 %previous, 1
 %at = add i64 %pair, %row
 %place = getelementptr {index}, ptr %indices, i64 %at
 %own = load {index}, ptr %place
 {widened}
 ret i64 {row}
none:
 ret i64 0
}}
define internal i64 @first_of_row(ptr %indices, i64 %row, i64 %from, i64 %count) nounwind {{
 %begins = icmp eq i64 %from, 0
 br i1 %begins, label %found, label %head
head:
 %e = phi i64 [ %from, %0 ], [ %next, %same ]
 %more = icmp ult i64 %e, %count
 br i1 %more, label %look, label %found
look:
 %pair = shl i64 %e, 1
 %at = add i64 %pair, %row
 %place = getelementptr {index}, ptr %indices, i64 %at
 %own = load {index}, ptr %place
 %before = getelementptr {index}, ptr %place, i64 -2
 %other = load {index}, ptr %before
 %is_same = icmp eq {index} %own, %other
 br i1 %is_same, label %same, label %found
same:
 %next = add i64 %e, 1
 br label %head
found:
 %place_of_row = phi i64 [ %from, %0 ], [ %e, %head ], [ %e, %look ]
 ret i64 %place_of_row
}}"""
