"""Ask TensorFlow 1.15 what `tests/contrib/image/image_programs.py` asks.

Run with a Python that has TensorFlow 1.15 with contrib (``golden/contrib/image.json`` came from 1.15.5):

    python tests/golden/make_contrib_image_goldens.py
"""

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "image"))

from image_programs import answers

found = {name: np.round(np.asarray(value, np.float64), 5).tolist() for name, value in answers(tf).items()}
path = Path(__file__).parent / "contrib" / "image.json"
path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
