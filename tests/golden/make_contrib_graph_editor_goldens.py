"""Ask TensorFlow 1.15 what the programs of contrib's graph editor do.

Run from the repository's root with a Python that has TensorFlow 1.15 (the file came from 1.15.5):
`python tests/golden/make_contrib_graph_editor_goldens.py`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tensorflow as tf
from tests.contrib.graph_editor.editor_programs import PROGRAMS, run

found = [run(tf, program) for program in PROGRAMS]
text = "[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in found) + "\n]\n"
(pathlib.Path(__file__).parent / "contrib_graph_editor" / "programs.json").write_text(text)
