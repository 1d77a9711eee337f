"""Series are read, and models trained, asked and exported, as by TensorFlow 1.15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.timeseries import series_programs

import flowstone as tf

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "timeseries.json").read_text())


def compare(found: Any, expected: Any, place: str = "") -> None:
    """The same structures, and numbers within what float32 leaves after three steps of training."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), place
        for name, value in expected.items():
            compare(found[name], value, f"{place}/{name}")
    elif isinstance(expected, list) and any(isinstance(each, dict | list | str) for each in expected):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            compare(found[number], value, f"{place}/{number}")
    elif isinstance(expected, str):
        assert found == expected, place
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=place)


@pytest.mark.parametrize("name", sorted(series_programs.PROGRAMS))
def test_a_program_computes_what_tensorflow_does(name: str) -> None:
    compare(json.loads(json.dumps(series_programs.PROGRAMS[name](tf))), GOLDEN[name])
