"""Ask TensorFlow 1.4 how the estimators of `tests/contrib/boosted_trees/estimator_programs.py` are trained.

Run with a Python that has TensorFlow 1.4 and its contrib (the file came from 1.4.1; the package of 1.15 lacks
the estimators): `python tests/golden/make_contrib_gbdt_goldens.py`. It writes `contrib/gbdt.json`, and
`contrib/gbdt_checkpoint`, a model as TensorFlow saves it.
"""

import builtins
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "boosted_trees"))

import estimator_programs
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.contrib.boosted_trees.estimator_batch import estimator
from tensorflow.contrib.boosted_trees.proto import learner_pb2

FOLDER = pathlib.Path(__file__).parent / "contrib"


def main():
    """Writes what every estimator found."""
    builtins.xrange = range  # the package of 1.4 needs it in Python 3
    found = {}
    for name, case in estimator_programs.cases().items():
        folder = tempfile.mkdtemp()
        answer = estimator_programs.train(
            tf, estimator, lambda text: text_format.Merge(text, learner_pb2.LearnerConfig()), case, folder
        )
        answer["ensemble"] = bytes(answer["ensemble"]).hex()
        found[name] = answer
        if name == "classes of sparse":
            latest = tf.train.latest_checkpoint(folder)
            shutil.rmtree(str(FOLDER / "gbdt_checkpoint"), ignore_errors=True)
            (FOLDER / "gbdt_checkpoint").mkdir()
            for path in pathlib.Path(folder).glob(pathlib.Path(latest).name + ".*"):
                if path.suffix != ".meta":
                    end = path.name[len(pathlib.Path(latest).name) :]
                    shutil.copy(str(path), str(FOLDER / "gbdt_checkpoint" / ("model" + end)))
    (FOLDER / "gbdt.json").write_text(json.dumps(found, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
