"""Ask TensorFlow what the programs of `contrib/programs.jsonl` make.

Run with a Python that has TensorFlow 1.15: `python tests/golden/make_small_program_goldens.py`. Given files,
their programs, each behind a line of dashes, are added.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import tensorflow as tf
import tensorflow.contrib

from contrib.small_programs import GOLDEN, answer, programs

if __name__ == "__main__":
    sources = [source for source, _ in programs()] if GOLDEN.exists() else []
    for path in sys.argv[1:]:
        sources += [each.strip() for each in pathlib.Path(path).read_text().split("\n----\n") if each.strip()]
    lines = [json.dumps([source, answer(tf, source)]) for source in dict.fromkeys(sources)]
    GOLDEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
