"""Where reductions accumulate: the slots of threads, and parts of vectors that are folded."""

from __future__ import annotations

from flowstone.native.clusters.accumulators import Slot, folded, parts_of
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.codegen.emitter import Emitter


def cluster(dtype: str, *overs: str) -> Cluster:
    steps = [Step("Sum", (0,), dtype, (("over", over),)) for over in overs]
    outputs = tuple(range(1, 1 + len(steps)))
    return Cluster((5, 40), (Array(dtype, (5, 40)),), tuple(steps), outputs, 1)


def test_a_slot_has_room_for_each_column() -> None:
    slot = Slot(cluster("float32", "columns", "row", "all"), 16)
    columns, everything = slot.places[1][0], slot.places[3][0]
    assert 2 not in slot.places
    assert (columns.offset, columns.vectors, columns.dtype) == (0, 3, "float64")
    assert (everything.offset, everything.vectors) == (3 * 16 * 8, 1)
    assert slot.size == 4 * 16 * 8


def test_sums_of_float64_have_two_parts() -> None:
    assert [dtype for dtype, _ in parts_of(cluster("float64", "all"), 1)] == ["float64", "float64"]
    places = Slot(cluster("float64", "columns"), 8).places[1]
    assert [place.offset for place in places] == [0, 5 * 8 * 8]


def test_lanes_are_folded_by_halves() -> None:
    e = Emitter(8, {}, "e")
    folded(e, cluster("float32", "row"), 1, ["%sum"])
    lines = [line for line in e.lines if "fadd" in line]
    assert ["<4 x double>" in lines[0], "<2 x double>" in lines[1], "fadd double" in lines[2]] == [True] * 3
    assert len(lines) == 3 and e.lanes == 8
