"""Ask TensorFlow what the input pipelines of `tests/data/pipelines.py` give, and the queries of `queries.py`
there; and for the files of a cache.

Run with a Python that has TensorFlow: `python tests/golden/make_data_goldens.py`; the files
`tests/golden/data/pipelines.json`, `queries.json` and `cache.*` came from 1.15.5.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "data"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "data"))

import tensorflow.compat.v1 as tf  # noqa: E402

import pipelines  # noqa: E402
import queries  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    GOLDEN.mkdir(exist_ok=True)
    found = {name: pipelines.run(tf, name) for name in pipelines.PROGRAMS}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in found.items()]
    (GOLDEN / "pipelines.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        queries.make(f"{folder}/rows")
        rows = queries.answers(tf, f"{folder}/rows")
    lines = [json.dumps(each) for each in rows]
    (GOLDEN / "queries.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    _write_cache()


def _write_cache() -> None:
    for old in GOLDEN.glob("cache.*"):
        old.unlink()
    columns = [1.0, 2.0, 3.0], [b"a", b"", b"c\xff"], [[1, 2], [3, 4], [5, 6]]
    tensors = tuple(tf.constant(column) for column in columns)
    dataset = tf.data.Dataset.from_tensor_slices(tensors).cache(str(GOLDEN / "cache"))
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        for _ in range(3):
            session.run(element)
        try:
            session.run(element)
        except tf.errors.OutOfRangeError:
            return


if __name__ == "__main__":
    main()
