"""Ask TensorFlow 1.15 what `TransformGraph` makes of small graphs: `tools/transforms.json`.

`python tests/golden/make_graph_transform_goldens.py`, with a Python that has TensorFlow.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

if __name__ == "__main__":
    import tensorflow as tf
    from tensorflow.tools.graph_transforms import TransformGraph
    from transform_programs import answers

    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers(tf, TransformGraph).items()]
    (HERE / "tools" / "transforms.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
