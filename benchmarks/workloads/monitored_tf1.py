"""What a MonitoredTrainingSession with its default hooks adds to a small training step."""

import tempfile

from tf1 import tf  # isort: skip
from measuring import median_of_many, report

x = tf.get_variable("x", initializer=tf.ones([16, 16]))
tf.summary.scalar("loss", tf.reduce_sum(x))
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.001).minimize(tf.reduce_sum(x * x), step)
with tempfile.TemporaryDirectory() as folder, tf.Session() as session:
    session.run(tf.global_variables_initializer())
    bare = median_of_many(lambda: session.run(train))
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder) as monitored:

        def monitored_step() -> None:
            if not monitored.should_stop():
                monitored.run(train)

        watched = median_of_many(monitored_step)
report("step", bare * 1e6, "us")
report("monitored step", watched * 1e6, "us")
report("added by monitoring", (watched - bare) * 1e6, "us")
