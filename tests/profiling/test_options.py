"""`ProfileOptionBuilder`: each method sets its options and returns the builder."""

from __future__ import annotations

from typing import Any

import pytest

from flowstone.profiling.options import Options, ProfileOptionBuilder

SET: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "with_max_depth": ((4,), {"max_depth": 4}),
    "with_min_memory": (
        (1, 2, 3, 4),
        {"min_bytes": 1, "min_peak_bytes": 2, "min_residual_bytes": 3, "min_output_bytes": 4},
    ),
    "with_min_execution_time": (
        (1, 2, 3),
        {"min_micros": 1, "min_accelerator_micros": 2, "min_cpu_micros": 3},
    ),
    "with_min_parameters": ((3,), {"min_params": 3}),
    "with_min_occurrence": ((4,), {"min_occurrence": 4}),
    "with_min_float_operations": ((5,), {"min_float_ops": 5}),
    "with_accounted_types": ((["a"],), {"account_type_regexes": ["a"]}),
    "with_node_names": (
        (["a"], ["b"], ["c"], ["d"]),
        {
            "start_name_regexes": ["a"],
            "show_name_regexes": ["b"],
            "hide_name_regexes": ["c"],
            "trim_name_regexes": ["d"],
        },
    ),
    "account_displayed_op_only": ((True,), {"account_displayed_op_only": True}),
    "with_empty_output": ((), {"output": "none"}),
    "with_stdout_output": ((), {"output": "stdout"}),
    "with_file_output": (("f",), {"output": "file:outfile=f"}),
    "with_timeline_output": (("t",), {"output": "timeline:outfile=t"}),
    "with_pprof_output": (("p",), {"output": "pprof:outfile=p"}),
    "order_by": (("bytes",), {"order_by": "bytes"}),
    "select": ((["bytes"],), {"select": ["bytes"]}),
    "with_step": ((3,), {"step": 3}),
}


@pytest.mark.parametrize("name", SET)
def test_sets(name: str) -> None:
    arguments, expected = SET[name]
    builder = ProfileOptionBuilder()
    before = builder.build()
    assert getattr(builder, name)(*arguments) is builder
    assert builder.build() == {**before, **expected}


def test_names_that_are_not_given_stay() -> None:
    builder = ProfileOptionBuilder().with_node_names(["a"], ["b"], ["c"], ["d"])
    before = builder.build()
    assert builder.with_node_names().build() == before


DEFAULTS = {
    "max_depth": 100,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}


def test_common_questions() -> None:
    assert ProfileOptionBuilder().build() == DEFAULTS
    shown_only = {"max_depth": 10000, "account_displayed_op_only": True}
    assert ProfileOptionBuilder.trainable_variables_parameter() == {
        **DEFAULTS, **shown_only, "account_type_regexes": ["_trainable_variables"], "select": ["params"],
    }  # fmt: skip
    assert ProfileOptionBuilder.float_operation() == {
        **DEFAULTS, **shown_only, "min_float_ops": 1, "order_by": "float_ops", "select": ["float_ops"],
    }  # fmt: skip
    assert ProfileOptionBuilder.time_and_memory(3, 4, min_cpu_micros=5) == {
        **DEFAULTS, **shown_only, "min_micros": 3, "min_bytes": 4, "min_cpu_micros": 5, "min_peak_bytes": 0,
        "min_accelerator_micros": 0, "min_residual_bytes": 0, "min_output_bytes": 0, "order_by": "micros",
        "select": ["micros", "bytes"],
    }  # fmt: skip


def test_what_is_built_is_the_callers() -> None:
    builder = ProfileOptionBuilder(begin := ProfileOptionBuilder.float_operation())
    builder.build()["select"].append("params")
    builder.with_max_depth(1).build()["hide_name_regexes"].append("x")
    assert builder.build()["select"] == ["float_ops"]
    assert begin["max_depth"] == 10000
    assert ProfileOptionBuilder().build()["hide_name_regexes"] == []


def test_regular_expressions_match_whole_names() -> None:
    options = Options({"show_name_regexes": ["net/w.*", "b"], "hide_name_regexes": [".*/read"]})
    names = ["net/w", "net/w/read", "w", "b", "bb", "net"]
    assert [name for name in names if options.shows_name(name)] == ["net/w", "b"]
    assert options.starts("anything")
    with pytest.raises(AttributeError):
        _ = options.min_sugar
