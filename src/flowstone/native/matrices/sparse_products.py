"""Products of a sparse matrix and a dense one in machine code (`sparse_code.py`), as functions of tensors.

Threads share the elements, if they are in the order of the result's rows, which the code sees as it goes;
else one thread takes all. The code for a type of values and of indices is compiled on a thread when a plan
first asks (`sparse_product`); what is called before it is there waits.
"""

from __future__ import annotations

import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import SparseProduct
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.matrices.sparse_code import PLACES, WORDS, product_code

__all__ = ["sparse_product"]

_VALUES = frozenset({torch.float32, torch.float64})
_INDICES = frozenset({torch.int32, torch.int64})
_NONE = -1


def sparse_product(values: torch.dtype, indices: torch.dtype) -> SparseProduct | None:
    """The function for these types; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or values not in _VALUES or indices not in _INDICES:
        return None
    return functools.partial(_product, _library(values, indices))


@functools.cache
def _library(values: torch.dtype, indices: torch.dtype) -> CodeLibrary:
    dtype, index = dtypes.from_torch(values).name, dtypes.from_torch(indices).name
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: product_code(dtype, index, lanes), WORDS, PLACES)


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
    has_team = terms >= machine.current().profile.sparse_team
    words = {
        "threads": torch.get_num_threads() if has_team else 1, "count": len(values),
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
