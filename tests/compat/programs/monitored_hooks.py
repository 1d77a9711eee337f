"""Supervised and monitored training: queues, custom hooks, checkpoints, restarts, summaries, local cluster flags."""
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.training import basic_session_run_hooks, session_run_hook

tf.logging.set_verbosity(tf.logging.ERROR)
FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("job_name", "worker", "One of 'ps', 'worker'")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of task within the job")
rng = np.random.RandomState(0)
X = rng.normal(size=[64, 3]).astype(np.float32)
Y = X.dot([[1.], [-2.], [.5]]).astype(np.float32) + 0.25


def build():
    global_step = tf.train.get_or_create_global_step()
    x, y = tf.constant(X), tf.constant(Y)
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.constant_initializer(0.))
    loss = tf.losses.mean_squared_error(y, tf.matmul(x, w) + b)
    tf.summary.scalar("loss", loss)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
    return global_step, loss, train_op, w


class LoggerHook(session_run_hook.SessionRunHook):
    """Records what is called, and asks for the loss."""
    def __init__(self, loss):
        self.loss, self.calls, self.losses = loss, [], []

    def begin(self):
        self.calls.append("begin")
        self._step, self._start = -1, time.time()

    def after_create_session(self, session, coord):
        self.calls.append("created %s %s" % (isinstance(session, tf.Session), coord.should_stop()))

    def before_run(self, run_context):
        self._step += 1
        assert run_context.session.graph is tf.get_default_graph() or True
        return tf.train.SessionRunArgs({"loss": self.loss}, options=tf.RunOptions())

    def after_run(self, run_context, run_values):
        self.losses.append(run_values.results["loss"])
        if len(self.losses) >= 1 and run_values.results["loss"] < 0.01:
            run_context.request_stop()

    def end(self, session):
        self.calls.append("end %d" % session.run(tf.train.get_global_step()))


class Listener(tf.train.CheckpointSaverListener):
    events = []

    def begin(self):
        self.events.append("begin")

    def after_save(self, session, global_step_value):
        self.events.append("saved %d" % global_step_value)

    def end(self, session, global_step_value):
        self.events.append("end %d" % global_step_value)


def monitored(logdir, steps):
    with tf.Graph().as_default():
        global_step, loss, train_op, w = build()
        logger = LoggerHook(loss)
        saver = tf.train.Saver(max_to_keep=3)
        scaffold = tf.train.Scaffold(saver=saver, init_fn=lambda scaffold, sess: Listener.events.append("init"))
        hooks = [tf.train.StopAtStepHook(last_step=steps), tf.train.NanTensorHook(loss), logger,
                 tf.train.CheckpointSaverHook(logdir, save_steps=4, listeners=[Listener()], scaffold=scaffold),
                 basic_session_run_hooks.SecondOrStepTimer and tf.train.StepCounterHook(every_n_steps=5, output_dir=logdir)]
        with tf.train.MonitoredTrainingSession(
                master="", is_chief=(FLAGS.task_index == 0), checkpoint_dir=logdir, scaffold=scaffold, hooks=hooks,
                save_checkpoint_secs=None, save_summaries_steps=2, log_step_count_steps=None,
                config=tf.ConfigProto(allow_soft_placement=True)) as mon_sess:
            while not mon_sess.should_stop():
                _, step = mon_sess.run([train_op, global_step])
        print(logger.calls, "%.5f" % logger.losses[0], "%.5f" % logger.losses[-1], len(logger.losses), int(step))
        print(Listener.events)
        del Listener.events[:]


logdir = tempfile.mkdtemp()
monitored(logdir, 10)
monitored(logdir, 14)  # continues
print(sorted(f for f in os.listdir(logdir) if f.endswith(".index")))
monitored(tempfile.mkdtemp(), 1000)  # stops by its own hook
tags = {}
for f in sorted(os.listdir(logdir)):
    if "tfevents" in f:
        for event in tf.train.summary_iterator(os.path.join(logdir, f)):
            for value in event.summary.value:
                tags.setdefault(value.tag, []).append(event.step)
print(sorted(tags), tags["loss"])

with tf.Graph().as_default():
    sv_dir = tempfile.mkdtemp()
    global_step, loss, train_op, w = build()
    summary_op = tf.summary.merge_all()
    sv = tf.train.Supervisor(is_chief=True, logdir=sv_dir, init_op=tf.global_variables_initializer(),
                             summary_op=None, saver=tf.train.Saver(), global_step=global_step, save_model_secs=0)
    with sv.managed_session(config=tf.ConfigProto()) as sess:
        for step in range(6):
            if sv.should_stop():
                break
            _, value, summ = sess.run([train_op, loss, summary_op])
            sv.summary_computed(sess, summ)
        sv.saver.save(sess, sv.save_path, global_step=global_step)
        print("supervised %.5f" % value, sv.save_path[len(sv_dir):], sv.is_chief, sess.run(global_step))
        sv.request_stop()
    with sv.prepare_or_wait_for_session() if False else tf.Session() as sess:
        sv.saver.restore(sess, tf.train.latest_checkpoint(sv_dir))
        print(" ".join("%.5f" % v for v in sess.run(w).ravel()))

with tf.Graph().as_default():
    global_step, loss, train_op, w = build()
    bad = tf.log(-1. - loss)
    try:
        with tf.train.SingularMonitoredSession(hooks=[tf.train.NanTensorHook(bad)]) as sess:
            sess.run(train_op)
    except tf.train.NanLossDuringTrainingError as error:
        print("nan:", type(error).__mro__[1].__name__)
    session_creator = tf.train.ChiefSessionCreator(tf.train.Scaffold(), checkpoint_dir=logdir)
    with tf.train.MonitoredSession(session_creator) as sess:
        print("%.5f" % sess.run_step_fn(lambda step_context: step_context.session.run(loss)))
