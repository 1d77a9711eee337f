"""Update programs: written, read, and put into as few places as they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.lowering.updates.update_programs import in_places, read, run, written

MEAN = ("add", ("mul", "n0", "h0"), ("mul", "n1", "x0"))
RESULTS = {"h0": MEAN, "h1": ("sub", "h1", ("mul", "n2", MEAN))}


def test_a_part_that_stands_twice_is_computed_once() -> None:
    text = written(RESULTS)
    assert text == "t0=mul(n0,h0);t1=mul(n1,x0);t2=add(t0,t1);t3=mul(n2,t2);t4=sub(h1,t3);h0=t2;h1=t4"
    assert read(text) == RESULTS


def test_results_lie_where_they_belong() -> None:
    program = in_places(written(RESULTS), 2, 1, 3)
    assert program.temporaries == 2 and program.copies == []
    assert [each.result for each in program.instructions] == [6, 7, 0, program.instructions[3].result, 1]


@pytest.mark.parametrize(
    "results",
    [
        RESULTS,
        {"h0": ("add", "h1", "x0"), "h1": ("mul", "h0", "x0")},  # each takes what the other was
        {"h0": ("add", "h1", "n0"), "h1": ("sub", ("neg", "h0"), ("add", "h1", "n0"))},
        {"h0": ("mul", "h0", "h0"), "h1": ("mul", "h0", "h0")},
        {"h0": ("maximum", ("abs", "h0"), ("sqrt", ("square", "h1"))), "h1": ("div", "n1", "h1")},
    ],
)
def test_programs_compute_their_expressions(results: Any) -> None:
    values = {"h0": 2.0, "h1": -4.0, "x0": 5.0, "n0": 0.5, "n1": 0.25, "n2": 0.125}
    functions = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "div": np.divide,
        "maximum": np.maximum, "abs": np.abs, "sqrt": np.sqrt, "square": np.square,
    }  # fmt: skip

    def value(expression: Any) -> Any:
        if isinstance(expression, str):
            return values[expression]
        return functions[expression[0]](*map(value, expression[1:]))

    program = in_places(written(results), 2, 1, 3)
    arrays = [torch.full([4], values[name]) for name in ("h0", "h1", "x0")]
    numbers = [torch.tensor(values[name]) for name in ("n0", "n1", "n2")]
    run(program, [*arrays, *numbers, *[torch.empty(4) for _ in range(program.temporaries)]])
    for i, name in enumerate(("h0", "h1")):
        assert arrays[i].tolist() == [value(results[name])] * 4
    assert arrays[2].tolist() == [5.0] * 4
