"""Ask TensorFlow for the gradients of the random programs of `tests/gradients/gradient_programs.py`.

Run with a Python that has TensorFlow 2 (the file came from 2.21):
`python tests/golden/make_gradient_program_goldens.py`. `tests/golden/gradient_programs/answers.json` has the
answers by seed, but for those where TensorFlow's step fails (see `tests/gradients/compare_gradients.py`).
"""

from __future__ import annotations

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "gradient_programs"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "gradients"))

import compare_gradients  # noqa: E402

import gradient_programs  # noqa: E402

SEEDS = range(220)
FAILURES = ("InvalidArgumentError", "ValueError")  # TensorFlow's, with slices


def main() -> None:
    tf, config = compare_gradients.package("tensorflow")
    answers = {seed: gradient_programs.answer(tf, seed, config) for seed in SEEDS}
    kept = {seed: x for seed, x in answers.items() if not (isinstance(x, str) and x.startswith(FAILURES))}
    FOLDER.mkdir(exist_ok=True)
    lines = ",\n".join(f'"{seed}": {json.dumps(x)}' for seed, x in kept.items())
    (FOLDER / "answers.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
