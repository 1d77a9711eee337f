"""The page of lowering: which passes a device runs, and in which order they stand."""

from __future__ import annotations

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.lowering.passes import COMPILING, EVERY, LOWERING, NAMES, passes_for, pipeline
from flowstone.rewriting.passes import SAVING, SIMPLIFYING


def names(passes) -> list[str]:
    return [each.name for each in passes]


def test_a_host_runs_the_whole_page() -> None:
    assert passes_for(CPU, in_part=False) == (*LOWERING, *COMPILING)
    assert pipeline(CPU) == EVERY


def test_a_gpu_runs_what_has_kernels_there() -> None:
    left_out = set(names(LOWERING)) - set(names(passes_for(GPU, in_part=False)))
    assert left_out == {each.name for each in LOWERING if each.hosts}
    assert {"convolve_by_winograd", "put_channels_last"} <= left_out
    assert {"fuse_biases", "pack_weights", "group_updates"}.isdisjoint(left_out)


def test_a_part_of_a_step_has_no_whole_loops() -> None:
    left_out = set(names(LOWERING)) - set(names(passes_for(CPU, in_part=True)))
    assert left_out == {
        "join_programs",
        "join_lstm_loops",
        "accumulate_parts",
        "forward_whole_arrays",
        "stack_accumulators",
    }


def test_every_pass_has_a_name_of_its_own_but_for_those_that_follow() -> None:
    once = [each.name for each in EVERY if not each.follows]
    assert len(set(once)) == len(once) and set(once) == NAMES
    assert names(EVERY)[: len(SIMPLIFYING)] == names(SIMPLIFYING)
    assert names(EVERY)[-len(SAVING) - len(COMPILING) :] == names((*SAVING, *COMPILING))


def test_purposes_are_said() -> None:
    assert all(each.purpose and each.function.__doc__ for each in EVERY)
