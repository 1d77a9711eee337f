"""Ask TensorFlow how each call of `wrong_calls.jsonl` fails.

Run with a Python that has TensorFlow 1.15: `python tests/golden/make_wrong_call_goldens.py`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import tensorflow as tf

from mistakes.wrong_calls import GOLDEN, answer, wrong_calls

if __name__ == "__main__":
    lines = [[expression, inputs, answer(tf, expression, inputs)] for expression, inputs, _ in wrong_calls()]
    GOLDEN.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
