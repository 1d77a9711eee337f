"""Programs under strategies that ran on TensorFlow 1.15, and how their answers are compared with ours."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.distribute import core

GOLDEN = Path(__file__).parents[2] / "golden" / "strategies"


class TensorFlow115:
    """`tf` with the name that strategies have since TensorFlow 1.14."""

    distribute = core

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


def programs(file: str) -> Any:
    """The module of a file of programs."""
    spec = importlib.util.spec_from_file_location(f"strategies_{file}", GOLDEN / f"{file}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(GOLDEN))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(GOLDEN))
    return module


def check(module: Any, program: Any, answers: str, folder: Path) -> None:
    """Fails unless a program of the module gives what the file of answers says."""
    expected = json.loads((GOLDEN / answers).read_text())[program.__name__]
    found = module.listed(program(TensorFlow115(), str(folder)))
    assert found.keys() == expected.keys()
    for key in expected:
        assert _near(found[key], expected[key]), (key, found[key], expected[key])


def _near(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(_near(*pair) for pair in zip(found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, rel=2e-4, abs=2e-4)
    return bool(found == expected)
