"""`tf.keras` against TensorFlow 1.15: numbers, names, configurations and texts (make_tf_keras_goldens.py)."""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

GOLDEN = Path(__file__).parents[2] / "golden"
pytestmark = pytest.mark.filterwarnings("ignore")


def _module() -> Any:
    spec = spec_from_file_location("make_tf_keras_goldens", GOLDEN / "make_tf_keras_goldens.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _module()
EXPECTED = json.loads((GOLDEN / "keras" / "tf_keras.json").read_text())


def _compare(found: Any, expected: Any, path: str) -> None:
    if isinstance(expected, float) and isinstance(found, (int, float)):
        assert found == pytest.approx(expected, rel=2e-4, abs=2e-6), path
    elif isinstance(expected, dict):
        assert sorted(found) == sorted(expected), path
        for key in expected:
            _compare(found[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, (one, other) in enumerate(zip(found, expected)):
            _compare(one, other, f"{path}[{i}]")
    else:
        assert found == expected, path


# Texts, layers in layers and classes of losses, which the package has since 2.3.
NEEDING = ("names_and_configurations", "a_layer_of_a_program", "losses_and_metrics")


@pytest.mark.parametrize("case", MAKER.CASES, ids=lambda case: case.__name__)
def test_it_does_as_tensorflow_1_15(case: Any) -> None:
    if version("keras").startswith("2.2") and case.__name__ in NEEDING:
        pytest.skip("needs Keras 2.3")
    found = json.loads(json.dumps(MAKER.result(tf, case)))
    _compare(found, EXPECTED[case.__name__], case.__name__)
