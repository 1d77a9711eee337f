"""Ask TensorFlow 1.15 what `tf.compat.v2.summary` writes in graphs: `later_summaries.json`.

`python tests/golden/make_later_summary_goldens.py`, with a Python that has TensorFlow.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "compat"))

if __name__ == "__main__":
    import tensorflow as tf

    from later_summary_programs import written

    with tempfile.TemporaryDirectory() as folder:
        answers = written(tf, tf.compat.v2.summary, folder)
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers.items()]
    (HERE / "later_summaries.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
