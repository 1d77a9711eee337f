"""Let TensorFlow export graphs with conditionals and loops, and import and differentiate flowstone's.

Run with a Python that has TensorFlow: `python tests/golden/make_meta_graph_goldens.py DIR`, after `python
tests/training/meta_graph_programs.py DIR` with flowstone wrote its MetaGraphDefs to the folder DIR. With a
second argument ``check`` only flowstone's are read, and compared. The files in `tests/golden/meta_graphs`
came from 1.15.5; `values.json` has what both came to.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "meta_graphs"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import tensorflow.compat.v1 as tf  # noqa: E402

import meta_graph_programs  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    folder = sys.argv[1]
    values = {}
    for name in meta_graph_programs.PROGRAMS:
        ours = f"{folder}/{name}.pbtxt"
        results = [meta_graph_programs.imported(tf, ours, scope) for scope in meta_graph_programs.SCOPES]
        own = meta_graph_programs.imported(tf, meta_graph_programs.exported(tf, name), "")
        assert results == [own] * len(results), (name, results, own)
        values[name] = own
    if sys.argv[2:] == ["check"]:
        return
    GOLDEN.mkdir(exist_ok=True)
    for name in meta_graph_programs.PROGRAMS:
        meta = meta_graph_programs.exported(tf, name)
        meta.meta_info_def.Clear()
        (GOLDEN / f"{name}.pb").write_bytes(meta.SerializeToString())
    (GOLDEN / "values.json").write_text(json.dumps(values) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
