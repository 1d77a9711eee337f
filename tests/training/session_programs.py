"""Programs that train in monitored sessions, run by Flowstone in tests and by TensorFlow for the goldens.

Each takes a module that speaks the TensorFlow 1 API, a folder and a function, which it calls with what
happens.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import Any

Say = Callable[..., None]


def _counting(tf: Any) -> Any:
    """The operation that counts a step, in a new graph."""
    tf.reset_default_graph()
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


def _telling_hook(tf: Any, name: str, say: Say, fetches: Any = None) -> Any:
    class Hook(tf.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def begin(self) -> None:
            say(name, "begin", tf.get_default_graph().finalized)

        def after_create_session(self, session: Any, coord: Any) -> None:
            step = session.run(tf.train.get_global_step())
            say(name, "after_create_session", type(session).__name__, int(step), session.graph.finalized)

        def before_run(self, context: Any) -> Any:
            say(name, "before_run", context.stop_requested, context.original_args.feed_dict is None)
            return None if fetches is None else tf.train.SessionRunArgs(fetches())

        def after_run(self, context: Any, values: Any) -> None:
            said = values.results
            said = int(said) if said is not None and not isinstance(said, (dict, list)) else said
            say(name, "after_run", said, type(values.options).__name__, type(values.run_metadata).__name__)

        def end(self, session: Any) -> None:
            say(name, "end", int(session.run(tf.train.get_global_step())))

    return Hook()


def _failing_hook(tf: Any, errors: Any) -> Any:
    """Raises the errors, in turn, after the steps that have one."""

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def after_run(self, context: Any, values: Any) -> None:
            error = errors.pop(0) if errors else None
            if error is not None:
                raise error

    return Hook()


def _tell_files(tf: Any, folder: str, say: Say) -> None:
    names = sorted(os.listdir(folder))
    say("files", [name for name in names if "tfevents" not in name])
    with open(os.path.join(folder, "checkpoint")) as state:
        say("state", [line.split('"')[1].replace(folder, "") for line in state if "checkpoint_path" in line])


def _tell_events(tf: Any, folder: str, say: Say) -> None:
    for path in sorted(glob.glob(os.path.join(folder, "*tfevents*"))):
        for event in tf.train.summary_iterator(path):
            kind = event.WhichOneof("what")
            if kind == "session_log":
                path = event.session_log.checkpoint_path.replace(folder, "")
                say("event", event.step, kind, event.session_log.status, path)
            elif kind == "summary":
                say("event", event.step, kind, [value.tag for value in event.summary.value])
            elif kind != "file_version":
                say("event", event.step, kind)


def order(tf: Any, folder: str, say: Say) -> None:
    """The order of the hooks' calls, and what they get."""
    count = _counting(tf)
    x = tf.placeholder(tf.float32, [], name="x")
    hooks = [_telling_hook(tf, "a", say), _telling_hook(tf, "b", say, tf.train.get_global_step)]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        say(int(session.run(count)), session.should_stop())
        say([float(v) for v in session.run([x, x], {x: 2.0})])
        say({k: float(v) for k, v in session.run({"x": x}, feed_dict={x: 3.0}).items()})
    say(session.should_stop(), session.graph is None, tf.get_default_graph().finalized)


def initialisers(tf: Any, folder: str, say: Say) -> None:
    """What a scaffold gives is run in order."""
    _counting(tf)
    v = tf.get_variable("v", initializer=1.0)
    start = tf.placeholder(tf.float32, [])
    local = tf.get_local_variable("local", initializer=5.0)
    tf.assert_type(local, tf.float32)
    scaffold = tf.train.Scaffold(
        init_op=tf.group(v.assign(start), tf.train.get_global_step().initializer),
        init_feed_dict={start: 4.0},
        init_fn=lambda scaffold, session: say("init_fn", float(session.run(v))),
    )
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
        say([float(value) for value in session.run([v, local])])
    keys = ["init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op", "savers"]
    say([len(tf.get_collection(key)) for key in keys])
    copy = tf.train.Scaffold(copy_from_scaffold=scaffold)
    say(copy.init_op is scaffold.init_op, copy.saver is scaffold.saver)


def training(tf: Any, folder: str, say: Say) -> None:
    """A training with its default hooks: files, state, events; a second one goes on."""
    for last in (5, 8):
        count = _counting(tf)
        tf.summary.scalar("count", tf.cast(tf.train.get_global_step(), tf.float32))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=[_telling_hook(tf, "own", say), tf.train.StopAtStepHook(last_step=last)],
            save_checkpoint_steps=2,
            save_summaries_steps=2,
            log_step_count_steps=3,
        ) as session:
            say([type(hook).__name__ for hook in session._hooks])
            while not session.should_stop():
                say("step", int(session.run(count)))
        _tell_files(tf, folder, say)
    tf.summary.FileWriterCache.get(folder).flush()
    _tell_events(tf, folder, say)


def recovery(tf: Any, folder: str, say: Say) -> None:
    """Steps that lose a process go on from the last checkpoint."""
    for kind in (tf.errors.AbortedError, tf.errors.UnavailableError):
        count = _counting(tf)
        own = os.path.join(folder, kind.__name__)
        errors = [None, None, None, kind(None, None, "lost"), None, kind(None, None, "lost again")]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=own,
            save_checkpoint_steps=2,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            hooks=[_telling_hook(tf, "own", say), _failing_hook(tf, errors)],
        ) as session:
            for _ in range(6):
                say("step", int(session.run(count)))
        _tell_files(tf, own, say)


def other_errors(tf: Any, folder: str, say: Say) -> None:
    """Other errors are raised, once; `end` is not called. Used up input ends the loop."""
    for error in (
        ValueError("bad"),
        tf.errors.InvalidArgumentError(None, None, "bad"),
        tf.errors.OutOfRangeError(None, None, "used up"),
        StopIteration("done"),
    ):
        count = _counting(tf)
        hooks = [_telling_hook(tf, "own", say), _failing_hook(tf, [None, error])]
        try:
            with tf.train.MonitoredSession(hooks=hooks) as session:
                for _ in range(3):
                    say("step", int(session.run(count)))
            say("ended")
        except Exception as raised:
            say("raised", type(raised).__name__, raised is error, session.should_stop())
    count = _counting(tf)
    hooks = [_failing_hook(tf, [tf.errors.AbortedError(None, None, "lost")])]
    try:
        with tf.train.SingularMonitoredSession(hooks=hooks) as session:
            say(type(session.raw_session()).__name__)
            session.run(count)
    except Exception as raised:
        say("raised", type(raised).__name__)


def step_functions(tf: Any, folder: str, say: Say) -> None:
    """Step functions run steps with and without hooks."""
    count = _counting(tf)
    hooks = [_telling_hook(tf, "own", say)]

    def step(step_context: Any) -> str:
        say("without", int(step_context.session.run(count)))
        value = step_context.run_with_hooks(count)
        say("with", int(value))
        if value > 5:
            step_context.request_stop()
        return "returned"

    with tf.train.MonitoredSession(hooks=hooks) as session:
        for bad in (lambda: 0, lambda context: 0, lambda a, b: 0):
            try:
                session.run_step_fn(bad)
            except ValueError as error:
                say(str(error)[:60])
        while not session.should_stop():
            say(session.run_step_fn(step))
    say(session.should_stop())


def mistakes(tf: Any, folder: str, say: Say) -> None:
    """What may not be done with hooks and sessions."""
    count = _counting(tf)
    x = tf.placeholder(tf.float32, [], name="x")
    feed = {x: 1.0}

    class Stop(tf.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def after_run(self, context: Any, values: Any) -> None:
            context.request_stop()

    for hooks, feed_dict, steps in (
        ([tf.train.FeedFnHook(lambda: feed), tf.train.FeedFnHook(lambda: feed)], None, 1),
        ([tf.train.FeedFnHook(lambda: feed)], feed, 1),
        ([tf.train.FeedFnHook(lambda: feed)], None, 1),
        ([Stop()], feed, 2),
    ):
        try:
            with tf.train.SingularMonitoredSession(hooks=hooks) as session:
                for _ in range(steps):
                    say(float(session.run(x, feed_dict)))
        except RuntimeError as error:
            say(str(error)[:46])
    with tf.train.MonitoredSession() as session:
        session.run(count)
    try:
        session.close()
    except RuntimeError as error:
        say(str(error))
    _counting(tf)
    tf.get_variable("v", initializer=1.0)
    try:
        tf.train.MonitoredSession(tf.train.ChiefSessionCreator(tf.train.Scaffold(init_op=tf.no_op())))
    except RuntimeError as error:
        say(str(error)[:46], str(error)[-60:])


def queues(tf: Any, folder: str, say: Say) -> None:
    """Queue runners begin and end with the session; their errors surface."""
    for error in ("OutOfRange", "InvalidArgument"):
        _counting(tf)
        i = tf.train.range_input_producer(3, shuffle=False, num_epochs=1).dequeue()
        if error == "InvalidArgument":
            i = tf.gather([0, 1], i)
        item = tf.train.batch([i], 1)
        try:
            with tf.train.MonitoredSession() as session:
                while not session.should_stop():
                    value = session.run(item).tolist()
                    if error == "OutOfRange":  # how many come before the other error is not certain
                        say(value)
            say("ended")
        except Exception as raised:
            say("raised", type(raised).__name__)


def hooks_of_steps(tf: Any, folder: str, say: Say) -> None:
    """The ready-made hooks: when they stop, log and compute."""
    train, lines = tf.train, []
    for stop in (lambda: train.StopAtStepHook(num_steps=2), lambda: train.StopAtStepHook(last_step=3)):
        count = _counting(tf)
        with train.MonitoredSession(hooks=[stop()]) as session:
            while not session.should_stop():
                say("step", int(session.run(count)))
    for arguments in (
        {"every_n_iter": 2, "at_end": True},
        {"at_end": True},
        {"every_n_secs": 1000.0},
    ):
        count = _counting(tf)
        double = tf.multiply(tf.cast(tf.train.get_global_step(), tf.int32), 0, name="zero")
        del lines[:]
        log = train.LoggingTensorHook(
            {"zero": double.name},
            formatter=lambda values: lines.append(int(values["zero"])) or "",
            **arguments,
        )
        final = train.FinalOpsHook(tf.train.get_global_step() * 10)
        wait = train.GlobalStepWaiterHook(0)
        with train.MonitoredSession(hooks=[log, final, wait]) as session:
            for _ in range(5):
                session.run(count)
            say(final.final_ops_values, len(lines))
        say(int(final.final_ops_values), lines)
    for fails in (False, True):
        count = _counting(tf)
        loss = tf.where(count > 1, tf.constant(float("nan")), tf.constant(1.0))
        try:
            with train.MonitoredSession(hooks=[train.NanTensorHook(loss, fails)]) as session:
                while not session.should_stop():
                    say("step", int(session.run(count)))
        except train.NanLossDuringTrainingError as error:
            say(str(error))


def listeners(tf: Any, folder: str, say: Say) -> None:
    """Listeners are told of checkpoints, and may stop the training."""
    count = _counting(tf)

    class Listener(tf.train.CheckpointSaverListener):  # type: ignore[misc, name-defined]
        def begin(self) -> None:
            say("begin")

        def before_save(self, session: Any, step: Any) -> None:
            say("before_save", int(step))

        def after_save(self, session: Any, step: Any) -> bool:
            say("after_save", int(step))
            return bool(step >= 4)

        def end(self, session: Any, step: Any) -> None:
            say("end", int(step))

    saver = tf.train.Saver(max_to_keep=2)
    hook = tf.train.CheckpointSaverHook(folder, save_steps=2, saver=saver, listeners=[Listener()])
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            say("step", int(session.run(count)))
    _tell_files(tf, folder, say)


def timers(tf: Any, folder: str, say: Say) -> None:
    """When a timer triggers."""
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    for step in (0, 0, 1, 2, 3, 4, 10):
        triggers = timer.should_trigger_for_step(step)
        say(step, triggers, timer.last_triggered_step())
        if triggers:
            say(timer.update_last_triggered_step(step)[1])
    timer.reset()
    say(timer.last_triggered_step(), timer.should_trigger_for_step(10))


def supervised(tf: Any, folder: str, say: Say) -> None:
    """A Supervisor's session: files, events, a second one that goes on; errors."""
    for last in (3, 5):
        count = _counting(tf)
        tf.summary.scalar("count", tf.cast(tf.train.get_global_step(), tf.float32))
        tf.summary.scalar("one", 1.0)
        supervisor = tf.train.Supervisor(logdir=folder, save_summaries_secs=0, save_model_secs=0)
        say(tf.get_default_graph().finalized, supervisor.is_chief, supervisor.save_path.replace(folder, ""))
        with supervisor.managed_session() as session:
            while not supervisor.should_stop():
                step = int(session.run(count))
                say("step", step)
                supervisor.summary_computed(session, session.run(supervisor.summary_op))
                if step == last:
                    supervisor.saver.save(session, supervisor.save_path, supervisor.global_step)
                    supervisor.request_stop()
        _tell_files(tf, folder, say)
        _tell_events(tf, folder, say)
        for name in glob.glob(os.path.join(folder, "*tfevents*")):
            os.remove(name)
    for error in (ValueError("bad"), tf.errors.OutOfRangeError(None, None, "used up")):
        count = _counting(tf)
        supervisor = tf.train.Supervisor(logdir=None, summary_op=None)
        try:
            with supervisor.managed_session() as session:
                session.run(count)
                raise error
            say("ended")
        except ValueError as raised:
            say("raised", raised is error)
    count = _counting(tf)
    supervisor = tf.train.Supervisor()

    def train_step(session: Any, most: int) -> None:
        say("step", int(session.run(count)))
        if session.run(supervisor.global_step) >= most:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, train_step, args=(2,))


PROGRAMS: dict[str, Callable[[Any, str, Say], None]] = {
    function.__name__: function
    for function in (
        order, initialisers, training, recovery, other_errors, step_functions, mistakes, queues,
        hooks_of_steps, listeners, timers, supervised,
    )
}  # fmt: skip


def record(tf: Any, name: str, folder: str) -> list[str]:
    """What happens in a program, a line each."""
    lines: list[str] = []
    PROGRAMS[name](tf, folder, lambda *said: lines.append(" ".join(map(str, said))))
    return lines
