"""Writes `collectives.json`: what TensorFlow gives for the programs of `tests/ops/collective_programs.py`.

Run with a Python that has TensorFlow 2.21: python tests/golden/make_collective_goldens.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "ops"))
from collective_programs import PROGRAMS, outcome  # noqa: E402

tf.disable_eager_execution()
found = {name: outcome(tf, collective_ops, program) for name, program in PROGRAMS.items()}
lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(found.items())]
(FOLDER / "collectives.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
