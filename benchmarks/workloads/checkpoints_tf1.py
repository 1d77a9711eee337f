"""Saving and restoring 500 MB of variables: the rate, in MB/s.

Flowstone flushes the files to the disk before it names them, as TensorFlow does not: its rate without that is
beside it.
"""

import os
import shutil
import tempfile

from tf1 import tf  # isort: skip

from measuring import median_seconds, report

COUNT, SHAPE = 20, (2500, 2500)
MEGABYTES = COUNT * SHAPE[0] * SHAPE[1] * 4 / 1e6

variables = [
    tf.get_variable(f"v{i}", SHAPE, initializer=tf.constant_initializer(float(i))) for i in range(COUNT)
]
saver = tf.train.Saver(max_to_keep=1)
folder = tempfile.mkdtemp(prefix="checkpoints-")
path = os.path.join(folder, "model")
try:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, path)

        def rate(function):
            return MEGABYTES / median_seconds(function, 1, 3)

        def save():
            saver.save(session, path)

        if os.environ["IMPLEMENTATION"] == "flowstone":
            report(
                "save, flushed", MEGABYTES / median_seconds(lambda: saver.save(session, path), 1, 3), "MB/s"
            )
            os.fsync = lambda descriptor: None
        report("save", rate(save), "MB/s")
        report("restore", rate(lambda: saver.restore(session, path)), "MB/s")
finally:
    shutil.rmtree(folder)
