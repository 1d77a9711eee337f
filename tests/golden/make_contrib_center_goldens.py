"""Ask TensorFlow 1.15 for the trainings of `tests/contrib/opt/center_programs.py`.

Run with a Python that has TensorFlow 1.15 with contrib (``golden/contrib/centers.json`` came from 1.15.5):

    python tests/golden/make_contrib_center_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "opt"))

from center_programs import cases, trajectory

answers = {name: trajectory(tf, name) for name in cases()}
path = Path(__file__).parent / "contrib" / "centers.json"
path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items()) + "\n}\n")
