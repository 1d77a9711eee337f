"""Asks TensorFlow 1.15 for the areas of `tests/contrib/metrics/area_programs.py`: contrib/areas.json.

Run with TensorFlow 1.15.5: ``$TF115_PYTHON tests/golden/make_contrib_area_goldens.py``.
"""

import json
import os
import sys

import tensorflow as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contrib", "metrics"))
import area_programs

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contrib")

with open(os.path.join(FOLDER, "areas.json"), "w") as file:
    json.dump(area_programs.answers(tf), file, indent=1, sort_keys=True)
    file.write("\n")
