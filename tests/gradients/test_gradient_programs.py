"""Random programs' gradients: TensorFlow's answers, and difference quotients.

The answers are in `tests/golden/gradient_programs`, made by `tests/golden/make_gradient_program_goldens.py`;
`compare_gradients.py` compares any number of other programs, and its last output is beside the answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.gradients import compare_gradients, gradient_programs

import flowstone as tf
from flowstone.framework import flags

GOLDEN = Path(__file__).parents[1] / "golden" / "gradient_programs"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
ASKED = list(ANSWERS)[::4]
EXACT = [1002, 1005, 1006, 1007, 1009, 1010, 1013, 1016, 1017, 1018, 1022, 1024, 1025, 1028, 1032, 1033]
EXACT += [1035, 1037, 1039, 1040, 1041, 1046, 1047, 1048, 1049, 1050, 1054, 1057, 1058, 1064, 1066, 1068]
"""Programs that neither refuse nor hold anything inside branches and loops."""


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass is checked."""
    monkeypatch.setattr(flags, "CHECK", 1)


@pytest.mark.parametrize("seed", ASKED)
def test_gradients_are_tensorflows(seed: str) -> None:
    found = gradient_programs.answer(tf, int(seed))
    assert compare_gradients.agree(found, ANSWERS[seed]), f"{found} instead of {ANSWERS[seed]}"


def test_the_answers_are_of_all_kinds() -> None:
    answers = [ANSWERS[seed] for seed in ASKED]
    gradients = [x for answer in answers if isinstance(answer, list) for x in answer]
    assert {None if x is None else x[0] for x in gradients} == {None, "tensor", "slices"}
    assert len(ANSWERS) >= 200 and "TypeError" + gradient_programs.AGAIN in answers


@pytest.mark.parametrize("seed", EXACT)
def test_gradients_are_difference_quotients(seed: int) -> None:
    slopes, quotients = gradient_programs.quotients(tf, seed)
    assert slopes
    for slope, quotient in zip(slopes, quotients):
        np.testing.assert_allclose(slope, quotient, rtol=1e-5, atol=1e-7)
