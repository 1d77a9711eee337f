"""Ask TensorFlow 1.15 for the trainings of `tests/contrib/opt/opt_programs.py`.

Run with a Python that has TensorFlow 1.15 with contrib (``golden/contrib/opt.json`` came from 1.15.5):

    python tests/golden/make_contrib_opt_goldens.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "contrib" / "opt"))

from opt_programs import cases, trajectory

answers = {
    f"{name} {resource} {sparse}": trajectory(tf, name, resource, sparse)
    for name, resource, sparse in cases()
}
path = Path(__file__).parent / "contrib" / "opt.json"
path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items()) + "\n}\n")
