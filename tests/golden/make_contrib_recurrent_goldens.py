"""Ask TensorFlow 1.15 for the variables and values of the programs of contrib's recurrent packages.

Run from the repository's root with a Python that has TensorFlow 1.15 (the files came from 1.15.5):
`python tests/golden/make_contrib_recurrent_goldens.py`, with the families to write, default all.
"""

from __future__ import annotations

import os
import pathlib
import sys
from types import SimpleNamespace

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tensorflow as tf
from tensorflow.contrib.rnn.python.ops import rnn_cell
from tests.contrib import recurrent_programs
from tests.contrib.crf import crf_programs
from tests.contrib.grid_rnn import grid_programs
from tests.contrib.legacy_seq2seq import list_programs
from tests.contrib.rnn import cell_programs, frequency_programs
from tests.contrib.seq2seq import decoding_programs

FAMILIES = {
    "crf": crf_programs,
    "frequency": frequency_programs,
    "grid_rnn": grid_programs,
    "legacy_seq2seq": list_programs,
    "rnn": cell_programs,
    "seq2seq": decoding_programs,
}

# TensorFlow's packages hide the modules within them.
tf.contrib.rnn.python = SimpleNamespace(ops=SimpleNamespace(rnn_cell=rnn_cell))
asked = sys.argv[1:] or FAMILIES
for family in asked:
    module = FAMILIES[family]
    found = {name: recurrent_programs.run(tf, program) for name, program in module.PROGRAMS.items()}
    recurrent_programs.write(family, found)
