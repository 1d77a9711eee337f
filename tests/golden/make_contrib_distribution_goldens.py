"""Makes tests/golden/contrib_distributions/answers.json: what TensorFlow 1.15's contrib distributions answer.

PYTHON_WITH_TENSORFLOW_1.15 tests/golden/make_contrib_distribution_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "contrib" / "distributions"))

import distribution_expressions as cases  # noqa: E402


def rounded(value):
    """The value with floats of seven digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def main():
    tf.logging.set_verbosity("ERROR")
    found = {
        "cases": {case[0]: cases.answers(tf, *case) for case in cases.CASES},
        "bijectors": {name: cases.bijection(tf, *rest) for name, *rest in cases.BIJECTORS},
        "functions": {text: cases.value_of(tf, text) for text in cases.FUNCTIONS},
        "faults": {text: cases.fault(tf, text) for text in cases.FAULTS},
    }
    path = TESTS / "golden" / "contrib_distributions" / "answers.json"
    lines = json.dumps(rounded(found), sort_keys=True, indent=0).replace("\n", " ").replace('}, "', '},\n"')
    path.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
