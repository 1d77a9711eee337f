"""Ask TensorFlow 1.15 what the programs of `tests/contrib/lookup` give, and for a `VocabularyProcessor`.

Run with a Python that has TensorFlow 1.15 with contrib (the files in ``golden/contrib`` came from 1.15.5):
`python tests/golden/make_contrib_lookup_goldens.py`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "contrib"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "lookup"))

import lookup_programs  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        found = lookup_programs.run(tf, pathlib.Path(name))
    lines = [f'"{name}": {json.dumps(value)}' for name, value in found.items()]
    (GOLDEN / "lookup.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4, min_frequency=1)
    processor.fit(["to be or not to be", "that is the question", "to die to sleep"])
    processor.save(str(GOLDEN / "vocabulary_processor.pickle"))


if __name__ == "__main__":
    main()
