"""Ask TensorFlow 1.4 what `tests/contrib/ndlstm/lstm_programs.py` asks.

Run with a Python that has TensorFlow 1.4 (1.4.1 made ``golden/contrib/ndlstm.json``):

    python tests/golden/make_contrib_ndlstm_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf
from tensorflow.contrib.ndlstm.python import lstm1d, lstm2d, misc

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "ndlstm"))

from lstm_programs import answers

path = Path(__file__).parent / "contrib" / "ndlstm.json"
rows = [
    f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answers(tf, lstm1d, lstm2d, misc).items()
]
path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
