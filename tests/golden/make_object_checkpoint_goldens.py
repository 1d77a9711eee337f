"""Write a checkpoint of objects with TensorFlow: `tests/golden/checkpoints/objects`.

Run with a Python that has TensorFlow 2 (it came from 2.21):
`python tests/golden/make_object_checkpoint_goldens.py`. The program is that of
`tests/training/test_object_checkpoint.py`, after one step.
"""

import os
import pathlib
import tempfile

import tensorflow.compat.v1 as tf

FOLDER = pathlib.Path(__file__).parent / "checkpoints"


class Model(tf.Module):
    """Holds what the program gives it."""


def main() -> None:
    """Writes the files."""
    tf.disable_v2_behavior()
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    r = tf.get_variable("rv", initializer=3, use_resource=True)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(v * v))
    model = Model()
    model.inner, model.several = r, [v]
    checkpoint = tf.train.Checkpoint(v=v, model=model, optimizer=optimizer)
    with tf.Session() as session, tempfile.TemporaryDirectory() as folder:
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = checkpoint.save(os.path.join(folder, "ck"), session=session)
        for name in os.listdir(folder):
            if name.startswith(os.path.basename(path)):
                data = (pathlib.Path(folder) / name).read_bytes()
                (FOLDER / ("objects" + name[len(os.path.basename(path)) :])).write_bytes(data)


if __name__ == "__main__":
    main()
