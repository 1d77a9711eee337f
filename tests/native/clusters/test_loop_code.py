"""The loops of a cluster as text: what is read and computed once, masked, kept in registers."""

from __future__ import annotations

from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.clusters.loop_code import rows_code
from flowstone.native.codegen import host


def code(*dims: int, other: tuple[int, ...] = ()) -> str:
    inputs = (Array("float32", dims), Array("float32", other))
    return rows_code(Cluster(dims, inputs, (Step("AddV2", (0, 1), "float32"),), (2,)), {})


def softmax(columns: int) -> str:
    steps = (
        Step("Max", (0,), "float32", (("over", "row"),)),
        Step("Sub", (0, 1), "float32"),
        Step("Exp", (2,), "float32"),
        Step("Sum", (3,), "float32", (("over", "row"),)),
        Step("RealDiv", (3, 4), "float32"),
    )
    return rows_code(Cluster((6, columns), (Array("float32", (6, columns)),), steps, (5,), 1), {})


def test_whole_vectors_need_no_mask() -> None:
    lanes = host.lanes()
    assert "masked" not in code(4 * lanes)
    assert code(4 * lanes + 1).count("@llvm.masked.load") == 1
    assert "column:" not in code(lanes - 1)


def test_what_is_the_same_along_a_row_is_read_outside_of_its_loop() -> None:
    everywhere, by_row = code(3, 64), code(3, 64, other=(3, 1))
    assert everywhere.index("load float, ptr %p1") < everywhere.index("row:")
    assert by_row.index("inside:") < by_row.index("load float, ptr %b1") < by_row.index("column:")


def test_an_exponential_is_kept_for_the_next_pass_of_a_long_row() -> None:
    lanes = host.lanes()
    text = softmax(64 * lanes)
    assert "column2:" in text and "column3:" not in text
    assert text.count("= alloca [") == 1 and "block1:" in text
    assert text.count("ptr %b0, i64 %c") == 2  # of x: for Max and for Sub


def test_a_short_row_stays_in_registers() -> None:
    lanes = host.lanes()
    text = softmax(2 * lanes + 1)
    assert "column:" not in text and "= alloca [" not in text
    assert text.count("ptr %b0, i64") == 3
