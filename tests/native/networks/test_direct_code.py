"""The text of sums over windows: it is compiled for every width of vectors."""

from __future__ import annotations

import pytest

from flowstone.native.codegen import compiler, host
from flowstone.native.networks.direct_code import PLACES, direct_code, rows_of_blocks


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_text_is_compiled(lanes: int) -> None:
    assert compiler.compiled(direct_code(lanes), list(PLACES)).address("windows")


@pytest.mark.parametrize(("lanes", "registers"), [(8, 16), (16, 32)])
def test_all_sums_of_a_block_stay_in_registers(lanes: int, registers: int) -> None:
    for vectors in range(1, 5):
        assert (rows_of_blocks(lanes, vectors) + 1) * vectors < registers + vectors
