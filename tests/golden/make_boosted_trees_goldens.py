"""Ask TensorFlow 1.15 how boosted trees grow: the programs of `tests/ops/forests` and `tests/estimator`.

Run with a Python that has TensorFlow 1.15 (the files came from 1.15.5):
`python tests/golden/make_boosted_trees_goldens.py`. It writes `estimators/boosted_trees_ops.json`,
`boosted_trees_models.json`, and `boosted_trees_model`, a checkpoint of an Estimator as TensorFlow saves it.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "estimators"
sys.path[:0] = [str(HERE.parent / "ops" / "forests"), str(HERE.parent / "estimator")]

import boosted_trees_models  # noqa: E402
import boosted_trees_programs  # noqa: E402
import tensorflow as tf  # noqa: E402


def main():
    """Writes what the programs give."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    write("boosted_trees_ops", boosted_trees_programs.run(tf))
    models = {}
    for name in boosted_trees_models.CASES:
        folder = tempfile.mkdtemp()
        models[name] = boosted_trees_models.run(tf, name, folder)
        if name == boosted_trees_models.SAVED:
            save(folder)
        shutil.rmtree(folder)
    write("boosted_trees_models", models)


def save(folder):
    """Keeps the last checkpoint of a model."""
    kept = FOLDER / "boosted_trees_model"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    prefix = pathlib.Path(tf.train.latest_checkpoint(folder))
    for path in prefix.parent.glob(prefix.name + ".*"):
        if path.suffix != ".meta":
            shutil.copy(path, kept / path.name.replace(prefix.name, "model.ckpt"))
    (kept / "checkpoint").write_text('model_checkpoint_path: "model.ckpt"\n')


def write(name, found):
    """Writes a file of JSON."""
    (FOLDER / f"{name}.json").write_text(json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
