"""The text of a function under construction: lines and their nodes, names, literals."""

from __future__ import annotations

import numpy as np
import pytest

from flowstone.runtime.code.generated_code import Code, identifier


def globals_of(code: Code) -> dict[str, object]:
    """What the finished function finds beside Python's own names."""
    code.line(0, "def segment(): pass")
    return {name: value for name, value in code.finish().globals.items() if name != "__builtins__"}


def test_lines_know_their_nodes_and_run() -> None:
    code = Code()
    code.line(0, "def segment(step, a0):")
    code.line(1, "v1 = a0 + one", "node", ["a0"])
    code.line(1, "return (v1,)")
    code.insert_first("one = k")
    assert code.name("k", 1) == "k"
    segment = code.finish()
    assert segment.source == "def segment(step, a0):\n one = k\n v1 = a0 + one\n return (v1,)\n"
    assert segment.function(None, 4) == (5,)
    assert segment.node_at(3) == "node" and segment.arguments_at(3) == ["a0"]
    assert segment.node_at(2) is None and segment.node_at(0) is None and segment.node_at(9) is None


def test_one_name_is_one_value() -> None:
    code, a, b = Code(), [1], [1]
    first = code.name("add", a)
    assert code.name("add", a) == first == "add"
    second = code.name("add", b)
    found = globals_of(code)
    assert second != "add" and found == {"add": a, second: b} and found[second] is b


@pytest.mark.parametrize("value", [None, True, -3, "NHWC", (1, 2), [0, 1]])
def test_small_arguments_are_written_out(value: object) -> None:
    code = Code()
    assert eval(code.literal(value)) == value and globals_of(code) == {}


@pytest.mark.parametrize("value", [0.1, np.float32(1), (0.5, 1), object()])
def test_other_arguments_are_globals(value: object) -> None:
    code = Code()
    name = code.literal(value)
    assert globals_of(code)[name] is value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("layer/weights", "weights"),
        ("a-b", "a_b"),
        ("v3", "c_v3"),
        ("step", "c_step"),
        ("lambda", "c_lambda"),
        ("3d", "c_3d"),
        ("x/", "c_"),
    ],
)
def test_names_of_nodes_as_names_of_python(name: str, expected: str) -> None:
    assert identifier(name, "c") == expected


def test_each_function_has_a_file_of_its_own() -> None:
    names = set()
    for _ in range(2):
        code = Code()
        code.line(0, "def segment(): return 1")
        names.add(code.finish().filename)
    assert len(names) == 2


def test_a_block_without_code_is_a_block() -> None:
    code = Code()
    for depth, text in enumerate(["def segment(x):", "if x:", "if x > 1:"]):
        code.line(depth, text)
    code.line(1, "if x > 2:")
    code.line(2, "return 2")
    code.line(1, "return 1")
    function = code.finish().function
    assert [function(x) for x in (0, 2, 3)] == [1, 1, 2]
