"""Makes tests/golden/distributions/answers.json: what TensorFlow 1.15's distributions answer.

PYTHON_WITH_TENSORFLOW_1.15 tests/golden/make_distribution_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "distributions"))

import distribution_cases as cases  # noqa: E402


def main():
    tf.logging.set_verbosity("ERROR")
    found = {
        "cases": {name: cases.answers(tf, *rest) for name, *rest in cases.CASES},
        "divergences": {each[0]: cases.divergence(tf, *each) for each in cases.DIVERGENCES},
        "faults": {text: cases.fault(tf, text) for text in cases.FAULTS},
    }
    path = TESTS / "golden" / "distributions" / "answers.json"
    lines = json.dumps(found, sort_keys=True, indent=0).replace("\n", " ")
    lines = lines.replace('}, "', '},\n"')
    path.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
