"""Philox's words in LLVM's text are those of the tensors' functions, of one block or a vector of them."""

from __future__ import annotations

import ctypes

import pytest
import torch

from flowstone.native.codegen import compiler, host
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store
from flowstone.native.randomness.philox_code import double_of, round_keys, words_after
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(
    "state", [State(5, 7), State((1 << 64) - 1, (1 << 65) - 3), State(1 << 63, 1 << 127)]
)
def test_words_and_numbers(lanes: int, state: State) -> None:
    declarations: dict[str, str] = {}
    parameters = ["ptr skipped", "i64 key", "i64 low", "i64 high", "ptr words", "ptr number"]
    e = Code("blocks", parameters, lanes, declarations, is_public=True)
    low, high = (in_all_lanes(e, "i64", each) for each in ("%low", "%high"))
    x = words_after(e, round_keys(e, "%key"), low, high, load(e, "int64", "%skipped", "0"))
    for i, word in enumerate(x):
        store(e, "int64", word, "%words", str(i * lanes))
    store(e, "float64", double_of(e, *x[:2]), "%number", "0")
    module = compiler.compiled("\n".join([*declarations.values(), e.text()]), ["blocks"])
    kinds = [ctypes.c_void_p, *[ctypes.c_uint64] * 3, ctypes.c_void_p, ctypes.c_void_p]
    skipped = torch.arange(1, lanes + 1)
    words, numbers = torch.empty(4, lanes, dtype=torch.int64), torch.empty(lanes, dtype=torch.float64)
    ctypes.CFUNCTYPE(None, *kinds)(module.address("blocks"))(
        skipped.data_ptr(), state.key, state.counter % 2**64, state.counter >> 64, words.data_ptr(),
        numbers.data_ptr(),
    )  # fmt: skip
    expected = torch.stack(
        [philox.blocks(state.skipped(i), 1, torch.device("cpu"))[0] for i in skipped.tolist()]
    )
    assert torch.equal(words.t(), expected)
    assert torch.equal(numbers, philox.doubles(expected[:, :2]))
