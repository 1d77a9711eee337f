"""Ask TensorFlow 1.15 what `tests/contrib/labeled_tensor/labeled_programs.py` asks.

Run with a Python that has TensorFlow 1.15 with contrib (1.15.5 made ``golden/contrib/labeled_tensor.json``):

    python tests/golden/make_contrib_labeled_tensor_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "labeled_tensor"))

from labeled_programs import answers

path = Path(__file__).parent / "contrib" / "labeled_tensor.json"
rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answers(tf).items()]
path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
