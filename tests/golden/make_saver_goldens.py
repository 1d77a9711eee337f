"""Let TensorFlow write checkpoints with Savers, read flowstone's, and name a Saver's operations.

Run with a Python that has TensorFlow: `python tests/golden/make_saver_goldens.py`, after
`python tests/training/saver_programs.py DIR` with flowstone wrote its checkpoints to the folder DIR, which
SAVED names. The files in `tests/golden/saver` came from 1.15.5; `read.json` says what that read.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "saver"
TABLES = [[1, 2, 3, -1], 3, [[0.5, 1.0], [1.5, 2.0], [0.0, 0.0]], 2]
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import tensorflow.compat.v1 as tf  # noqa: E402

import saver_programs  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    names = {}
    for name in saver_programs.SAVERS:
        saver_programs.save(tf, name, str(GOLDEN / name))
        names[name] = saver_programs.names(tf, name)
    (GOLDEN / "names.json").write_text(json.dumps(names, indent=0) + "\n", encoding="utf-8")
    saver_programs.save_tables(tf, str(GOLDEN / "tables"))
    saved = os.environ.get("SAVED")
    if saved:
        assert saver_programs.restored_tables(tf, f"{saved}/tables") == TABLES
        read = {name: saver_programs.restored(tf, name, f"{saved}/{name}") for name in saver_programs.SAVERS}
        (GOLDEN / "read.json").write_text(json.dumps(read) + "\n", encoding="utf-8")
    for path in GOLDEN.glob("*/checkpoint"):
        path.unlink()


if __name__ == "__main__":
    main()
