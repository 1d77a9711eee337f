"""Ask TensorFlow 1.15 for the rewritten models of `tests/contrib/quantize/quantize_programs.py`.

Run with a Python that has TensorFlow 1.15 with contrib (``golden/contrib/quantize.json`` came from 1.15.5):

    python tests/golden/make_contrib_quantize_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "quantize"))

from quantize_programs import CASES, answer

answers = {name: answer(tf, name) for name in CASES}
path = Path(__file__).parent / "contrib" / "quantize.json"
path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items()) + "\n}\n")
