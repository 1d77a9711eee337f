"""Calls of the classes of `tf.train` that run sessions, and of its messages."""

from class_calls import ClassCalls

MESSAGES = """
ints = tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 4]))
words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'a']))
rows = tf.train.FeatureList(feature=[ints, words])
def text(message):
    return message.SerializeToString().decode('latin-1')
"""
PROTOS = {
    "BytesList": "list(tf.train.BytesList(value=[b'a', b'']).value)",
    "ClusterDef": "text(tf.train.ClusterDef(job=[tf.train.JobDef(name='w', tasks={0: 'h:1'})]))",
    "Example": "text(tf.train.Example(features=tf.train.Features(feature={'k': ints})))",
    "Feature": "[each.WhichOneof('kind') for each in [ints, words, tf.train.Feature()]]",
    "FeatureList": "[text(rows), len(rows.feature)]",
    "FeatureLists": "text(tf.train.FeatureLists(feature_list={'r': rows}))",
    "Features": "text(tf.train.Features(feature={'k': words}))",
    "FloatList": "list(tf.train.FloatList(value=[0.5, -2.0]).value)",
    "Int64List": "[list(tf.train.Int64List(value=[1, 2]).value), text(tf.train.Int64List(value=[1, 2]))]",
    "JobDef": "text(tf.train.JobDef(name='w', tasks={1: 'h:2'}))",
    "SaverDef": (
        "[text(tf.train.SaverDef(max_to_keep=3, version=tf.train.SaverDef.V2)), tf.train.SaverDef.LEGACY]"
    ),
    "SequenceExample": (
        "text(tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list={'r': rows})))"
    ),
    "ServerDef": "text(tf.train.ServerDef(job_name='w', task_index=1, protocol='grpc'))",
}
SESSIONS = """
import os, tempfile, time
folder = tempfile.mkdtemp()
def path(*parts):
    return os.path.join(folder, *parts)
def files(name):
    return sorted({each.split('.')[0] for each in os.listdir(path(name))})
def stepped(*hooks, **others):
    count = others.pop('count', 4)
    open_session = others.pop('open', None)
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        rate = tf.get_variable('rate', [], initializer=tf.constant_initializer(0.5))
        after = tf.assign_add(step, 1)
        tf.summary.scalar('rate', rate)
        made = [hook() for hook in hooks]
        found = []
        with (open_session or tf.train.MonitoredSession)(hooks=made, **others) as session:
            while not session.should_stop() and len(found) < count:
                found.append(session.run(after).item())
        return found
class Seen(tf.train.SessionRunHook):
    calls = []
    def begin(self):
        del self.calls[:]
        self.calls.append('begin')
    def after_create_session(self, session, coord):
        self.calls.append(['created', coord is not None])
    def before_run(self, run_context):
        self.calls.append(len(run_context.original_args.fetches.name))
        return tf.train.SessionRunArgs({'r': 'rate:0'})
    def after_run(self, run_context, run_values):
        self.calls.append(float(run_values.results['r']))
        if len(self.calls) > 5:
            run_context.request_stop()
    def end(self, session):
        self.calls.append('end')
class Listener(tf.train.CheckpointSaverListener):
    calls = []
    def begin(self):
        self.calls.append('begin')
    def before_save(self, session, global_step_value):
        self.calls.append(['before', int(global_step_value)])
    def after_save(self, session, global_step_value):
        self.calls.append(['after', int(global_step_value)])
    def end(self, session, global_step_value):
        self.calls.append(['end', int(global_step_value)])
def nan(fail):
    hook = tf.train.NanTensorHook(tf.constant(float('nan'), name='n'), fail)
    return hook
def failing(*hooks):
    try:
        return stepped(*hooks)
    except tf.train.NanLossDuringTrainingError as error:
        return ['failed', isinstance(error, RuntimeError), str(error) != '']
def logged(make):
    lines = []
    info = tf.logging.info
    hook = make(lambda values: lines.append(sorted(values)) or 'line')
    stepped(lambda: hook)
    return lines
def ready():
    with tf.Graph().as_default():
        v = tf.Variable(3.0, name='v')
        manager, start = tf.train.SessionManager(local_init_op=tf.no_op()), tf.global_variables_initializer()
        with manager.prepare_session('', start) as session:
            return session.run(v)
def created(creator):
    with tf.Graph().as_default():
        v = tf.Variable(3.0, name='v')
        return creator().create_session().run(v)
def made_ready(scaffold):
    with tf.Graph().as_default():
        tf.Variable(3.0, name='v')
        made = scaffold().finalize()
        return [made.init_op.type, made.local_init_op.type, made.ready_op.dtype, made.saver is not None]
def fed_by(make):
    with tf.Graph().as_default():
        fed = tf.placeholder_with_default(1, [])
        more = fed + 1
        with tf.train.MonitoredSession(hooks=[make(fed)]) as session:
            return session.run(more)
def saved():
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0], name='v')
        with tf.Session() as session:
            session.run(v.initializer)
            at = tf.train.Saver([v], max_to_keep=2).save(session, path('saver'), 3)
            session.run(v.assign([0.0, 0.0]))
            tf.train.Saver().restore(session, at)
            return [os.path.basename(at), session.run(v)]
def supervised(work):
    with tf.Graph().as_default():
        after = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return work(tf.train.Supervisor(logdir=None, summary_op=None), after)
def managed(supervisor, after):
    with supervisor.managed_session() as session:
        return [session.run(after), session.run(after), supervisor.should_stop()]
def basic(supervisor, after):
    found = []
    def train(session, limit, more):
        found.append(session.run(after))
        if len(found) == limit:
            supervisor.request_stop()
        return more
    tf.train.basic_train_loop(supervisor, train, (3,), {'more': 1})
    return found
def looped():
    coordinator, calls = tf.train.Coordinator(), []
    def call(limit):
        calls.append(limit)
        if len(calls) == limit:
            coordinator.request_stop()
    thread = tf.train.LooperThread.loop(coordinator, None, call, (3,))
    coordinator.join([thread])
    return [calls, coordinator.should_stop(), thread.is_alive()]
def timed(timer):
    first = [timer.should_trigger_for_step(3), timer.update_last_triggered_step(3)]
    first.append(timer.last_triggered_step())
    return first + [timer.should_trigger_for_step(each) for each in [4, 5]]
def placed(name, **options):
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(**options)):
        return [tf.Variable(1.0).device, tf.Variable(1.0).device, tf.constant(1).device]
"""
HOOKS = {
    "CheckpointSaverHook": (
        "[stepped(lambda: tf.train.CheckpointSaverHook(path('c'), None, 2, None, 'm.ckpt', None,"
        " [Listener()])), files('c'),"
        " Listener.calls]"
    ),
    "CheckpointSaverListener": "[tf.train.CheckpointSaverListener().begin(), Listener().begin()]",
    "FeedFnHook": "fed_by(lambda fed: tf.train.FeedFnHook(lambda: {fed: 5}))",
    "FinalOpsHook": "[[stepped(lambda: h), h.final_ops_values] for h in [tf.train.FinalOpsHook('rate:0')]]",
    "GlobalStepWaiterHook": "stepped(lambda: tf.train.GlobalStepWaiterHook(0))",
    "LoggingTensorHook": (
        "[logged(lambda f: tf.train.LoggingTensorHook(['rate:0'], 2, None, formatter=f)),"
        " logged(lambda f: tf.train.LoggingTensorHook({'r': 'rate:0'}, at_end=True, formatter=f))]"
    ),
    "NanLossDuringTrainingError": "issubclass(tf.train.NanLossDuringTrainingError, RuntimeError)",
    "NanTensorHook": "[failing(lambda: nan(True)), failing(lambda: nan(False))]",
    "ProfilerHook": (
        "[os.makedirs(path('p')), stepped(lambda: tf.train.ProfilerHook(3, output_dir=path('p'))),"
        " sorted(each for each in os.listdir(path('p')) if 'timeline' in each)]"
    ),
    "SecondOrStepTimer": "timed(tf.train.SecondOrStepTimer(None, 2))",
    "SessionRunArgs": "list(tf.train.SessionRunArgs('a', {'b': 1}))[:2]",
    "SessionRunContext": (
        "[[c.original_args, c.session, c.stop_requested, c.request_stop(), c.stop_requested]"
        " for c in [tf.train.SessionRunContext('args', None)]]"
    ),
    "SessionRunHook": "[stepped(lambda: Seen()), Seen.calls]",
    "SessionRunValues": "list(tf.train.SessionRunValues(1, 2, 3))",
    "StepCounterHook": (
        "[stepped(lambda: tf.train.StepCounterHook(2, None, path('s'))),"
        " [v.tag for f in os.listdir(path('s')) for e in tf.train.summary_iterator(path('s', f))"
        " for v in e.summary.value]]"
    ),
    "StopAtStepHook": (
        "[stepped(lambda: tf.train.StopAtStepHook(2)), stepped(lambda: tf.train.StopAtStepHook(last_step=3))]"
    ),
    "SummarySaverHook": (
        "[stepped(lambda: tf.train.SummarySaverHook(2, None, path('y'), None, None, tf.summary.merge_all())),"
        " [[e.step, v.tag] for f in os.listdir(path('y')) for e in tf.train.summary_iterator(path('y', f))"
        " for v in e.summary.value]]"
    ),
}
RUNS = {
    "ChiefSessionCreator": (
        "created(lambda: tf.train.ChiefSessionCreator(tf.train.Scaffold(), '', None, None))"
    ),
    "Coordinator": (
        "[[c.should_stop(), c.request_stop(), c.should_stop(), c.wait_for_stop(1), c.joined]"
        " for c in [tf.train.Coordinator((ValueError,))]]"
    ),
    "LooperThread": "looped()",
    "MonitoredSession": "stepped()",
    "MonitoredTrainingSession": (
        "[stepped(count=3, open=tf.train.MonitoredTrainingSession, checkpoint_dir=path('t'),"
        " save_checkpoint_secs=600,"
        " save_summaries_steps=2, log_step_count_steps=None), files('t')]"
    ),
    "Saver": "saved()",
    "Scaffold": "made_ready(lambda: tf.train.Scaffold())",
    "SessionCreator": "hasattr(tf.train.SessionCreator, 'create_session')",
    "SessionManager": "ready()",
    "SingularMonitoredSession": "stepped(open=tf.train.SingularMonitoredSession, count=2)",
    "Supervisor": "supervised(managed)",
    "WorkerSessionCreator": (
        "[[hasattr(c, 'create_session')] for c in [tf.train.WorkerSessionCreator(tf.train.Scaffold(), '',"
        " None)]]"
    ),
    "basic_train_loop": "supervised(basic)",
    "replica_device_setter": (
        "[placed('a', ps_tasks=2), placed('b', ps_tasks=1, ps_device='/job:a', worker_device='/job:b/task:3',"
        " merge_devices=True, ps_ops=['VariableV2'])]"
    ),
}
TABLES = [ClassCalls("tf.train", MESSAGES, PROTOS), ClassCalls("tf.train", SESSIONS, {**HOOKS, **RUNS})]
