"""Members of the classes of `tf.train` that start sessions and coordinate threads."""

from class_calls import ClassCalls

COMMON = """
import os, tempfile, threading
folder = tempfile.mkdtemp()
def path(*parts):
    return os.path.join(folder, *parts)
def check(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
"""
COORDINATORS = (
    COMMON
    + """
def failing(*types):
    it = tf.train.Coordinator(*types)
    with it.stop_on_exception():
        raise ValueError('a')
    return [it.should_stop(), check(lambda: it.join([]))]
def registered():
    it = tf.train.Coordinator()
    thread = threading.Thread(target=it.wait_for_stop)
    it.register_thread(thread)
    thread.start()
    it.request_stop()
    it.join()
    return [thread.is_alive(), it.joined]
def stopped(work):
    it = tf.train.Coordinator()
    it.request_stop()
    return work(it)
def requested():
    it = tf.train.Coordinator()
    with it.stop_on_exception():
        raise KeyError('k')
    return [check(it.raise_requested_exception), check(lambda: it.join([]))]
"""
)
COORDINATOR = {
    "__init__": "[failing(), failing((ValueError,))]",
    "clear_stop": "stopped(lambda it: [it.clear_stop(), it.should_stop()])",
    "join": "stopped(lambda it: [it.join([], 2, True), it.joined])",
    "joined": "tf.train.Coordinator().joined",
    "raise_requested_exception": "[requested(), tf.train.Coordinator().raise_requested_exception()]",
    "register_thread": "registered()",
    "request_stop": "stopped(lambda it: [it.request_stop(), it.should_stop()])",
    "should_stop": "[tf.train.Coordinator().should_stop(), stopped(lambda it: it.should_stop())]",
    "stop_on_exception": "failing()",
    "wait_for_stop": (
        "[tf.train.Coordinator().wait_for_stop(0.01), stopped(lambda it: it.wait_for_stop(timeout=1))]"
    ),
}
THREADS = (
    COMMON
    + """
def looper(work=lambda it: None, *kinds):
    coordinator, calls = tf.train.Coordinator(), []
    def target(*arguments, **named):
        calls.append([list(arguments), sorted(named)])
        if len(calls) == 2:
            coordinator.request_stop()
    it = (kinds[0] if kinds else tf.train.LooperThread)(coordinator, None, target, (1,), {'k': 2})
    found = work(it)
    if it.ident is None:
        it.start()
    coordinator.join([it])
    return [found, calls]
class Looping(tf.train.LooperThread):
    seen = []
    def start_loop(self):
        self.seen.append('start')
    def run_loop(self):
        self.seen.append('run')
        self._coord.request_stop()
    def stop_loop(self):
        self.seen.append('stop')
def looped():
    coordinator = tf.train.Coordinator()
    coordinator_calls = []
    def target(limit):
        coordinator_calls.append(limit)
        coordinator.request_stop()
    thread = tf.train.LooperThread.loop(coordinator, None, target, (3,))
    coordinator.join([thread])
    return [coordinator_calls, isinstance(thread, tf.train.LooperThread)]
def overridden():
    del Looping.seen[:]
    coordinator = tf.train.Coordinator()
    it = Looping(coordinator, None)
    it.start()
    coordinator.join([it])
    return Looping.seen
"""
)
THREAD = {
    "__init__": "[looper(), check(lambda: tf.train.LooperThread('none', None))]",
    "daemon": "looper(lambda it: it.daemon)",
    "getName": "looper(lambda it: it.getName() == it.name)",
    "ident": "looper(lambda it: it.ident)",
    "isDaemon": "looper(lambda it: it.isDaemon())",
    "is_alive": "looper(lambda it: it.is_alive())",
    "join": "looper(lambda it: [it.start(), it.join(20), it.is_alive()])",
    "loop": "looped()",
    "name": "looper(lambda it: type(it.name).__name__)",
    "run": "looper(lambda it: it.run())",
    "run_loop": "[overridden(), looper(lambda it: it.run_loop())]",
    "setDaemon": "looper(lambda it: [it.setDaemon(False), it.daemon])",
    "setName": "looper(lambda it: [it.setName('n'), it.name])",
    "start": "looper(lambda it: it.start())",
    "start_loop": "[overridden(), looper(lambda it: it.start_loop())]",
    "stop_loop": "[overridden(), looper(lambda it: it.stop_loop())]",
}
SCAFFOLDS = (
    COMMON
    + """
def finalized(work, **options):
    with tf.Graph().as_default():
        tf.Variable(3.0, name='v')
        options = {key: value() if callable(value) else value for key, value in options.items()}
        it = tf.train.Scaffold(**options)
        it.finalize()
        return work(it)
def kept():
    with tf.Graph().as_default():
        kept = tf.train.Scaffold.get_or_default
        found = [kept('a', 'kept', lambda: tf.constant(each)).op.name for each in [1, 2]]
        return found + [len(tf.get_collection('kept'))]
def ran(op):
    with tf.Session() as session:
        session.run(op)
        return session.run('v:0')
"""
)
SCAFFOLD = {
    "__init__": "finalized(lambda it: it.init_feed_dict, init_op=tf.no_op, init_feed_dict={'a': 1})",
    "finalize": "finalized(lambda it: it.finalize() is it)",
    "get_or_default": "kept()",
    "init_feed_dict": "finalized(lambda it: it.init_feed_dict)",
    "init_fn": (
        "[finalized(lambda it: it.init_fn), finalized(lambda it: callable(it.init_fn),"
        " init_fn=lambda: lambda s: 1)]"
    ),
    "init_op": "finalized(lambda it: ran(it.init_op))",
    "local_init_op": "finalized(lambda it: it.local_init_op.type)",
    "ready_for_local_init_op": "finalized(lambda it: it.ready_for_local_init_op.dtype)",
    "ready_op": "finalized(lambda it: it.ready_op.dtype)",
    "saver": "finalized(lambda it: isinstance(it.saver, tf.train.Saver))",
    "summary_op": "[finalized(lambda it: it.summary_op),"
    " finalized(lambda it: it.summary_op.dtype, summary_op=lambda: tf.summary.scalar('a', 1.0))]",
}
MANAGERS = (
    COMMON
    + """
def managed(work, **options):
    with tf.Graph().as_default():
        v = tf.Variable(3.0, name='v')
        init, saver = tf.global_variables_initializer(), tf.train.Saver()
        options.setdefault('ready_op', tf.report_uninitialized_variables())
        return work(tf.train.SessionManager(**options), init, saver, v)
def recovered(it, init, saver, v):
    first, was = it.recover_session('', saver, path('none'))
    with tf.Session() as session:
        session.run(init)
        session.run(v.assign(7.0))
        at = saver.save(session, path('m'))
    second, found = it.recover_session('', saver, None, at)
    return [was, found, second.run(v)]
def waiting(it, init, saver, v):
    return check(lambda: it.wait_for_session('', max_wait_secs=0.01))
def prepared(it, init, saver, v):
    fed = it.prepare_session('', init, init_feed_dict={'v/initial_value:0': 5.0})
    called = it.prepare_session('', init_fn=lambda session: session.run(init))
    return [fed.run(v), called.run(v), check(lambda: it.prepare_session(''))]
"""
)
MANAGER = {
    "__init__": "[managed(recovered, recovery_wait_secs=1), managed(lambda it, *others: it is not None)]",
    "prepare_session": "managed(prepared)",
    "recover_session": "managed(recovered)",
    "wait_for_session": (
        "[managed(waiting, recovery_wait_secs=5), managed(lambda it, i, s, v: run(v), ready_op=None)]"
    ),
}
WORKERS = """
def created(work):
    with tf.Graph().as_default():
        none = tf.constant([], tf.string)
        scaffold = tf.train.Scaffold(ready_op=none, ready_for_local_init_op=none)
        return work(tf.train.WorkerSessionCreator(scaffold, '', None))
"""
WORKER = {
    "__init__": "created(lambda it: isinstance(it, tf.train.SessionCreator))",
    "create_session": "created(lambda it: isinstance(it.create_session(), tf.Session))",
}
SUPERVISORS = (
    COMMON
    + """
def supervised(work, logdir=None, **options):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        after = tf.assign_add(step, 1, name='after')
        tf.summary.scalar('s', 1.5)
        with tf.Session() as session:
            return work(tf.train.Supervisor(logdir=logdir, **options), session)
def named(value):
    return value.op.name if hasattr(value, 'op') else getattr(value, 'name', value)
def failing(it, session):
    with it.stop_on_exception():
        raise ValueError('a')
    return [it.should_stop(), check(lambda: it.stop())]
def managing(it, session):
    with it.managed_session('', None, start_standard_services=False) as own:
        return [own.run('after:0'), own.run('after:0')]
def summed(it, session):
    own = it.prepare_or_wait_for_session(start_standard_services=False)
    it.summary_computed(own, own.run(tf.get_default_graph().get_tensor_by_name('s:0')), 4)
    it.summary_writer.flush()
    file = [f for f in os.listdir(path('s')) if 'tfevents' in f][0]
    found = [e.step for e in tf.train.summary_iterator(path('s', file)) if e.WhichOneof('what') == 'summary']
    it.stop()
    return found
def looping(it, session):
    calls = []
    def target(limit):
        calls.append(limit)
        if len(calls) == 2:
            it.request_stop()
    thread = it.loop(None, target, (2,))
    it.coord.join([thread])
    return calls
def waited(it, session):
    it.request_stop()
    return [it.wait_for_stop(), it.should_stop()]
"""
)
SUPERVISOR = {
    "USE_DEFAULT": "tf.train.Supervisor.USE_DEFAULT",
    "__init__": (
        "supervised(lambda it, s: [it.save_model_secs, it.save_summaries_secs], None, save_model_secs=5,"
        " save_summaries_secs=6)"
    ),
    "coord": "supervised(lambda it, s: isinstance(it.coord, tf.train.Coordinator))",
    "global_step": "supervised(lambda it, s: named(it.global_step))",
    "init_feed_dict": "supervised(lambda it, s: it.init_feed_dict, init_feed_dict={'a': 1})",
    "init_op": "supervised(lambda it, s: it.init_op.type)",
    "is_chief": "supervised(lambda it, s: it.is_chief)",
    "managed_session": "supervised(managing)",
    "ready_for_local_init_op": "supervised(lambda it, s: it.ready_for_local_init_op is None)",
    "ready_op": "supervised(lambda it, s: it.ready_op.dtype)",
    "save_model_secs": "supervised(lambda it, s: it.save_model_secs)",
    "save_path": (
        "supervised(lambda it, s: os.path.basename(it.save_path), path('p'), checkpoint_basename='b')"
    ),
    "save_summaries_secs": "supervised(lambda it, s: it.save_summaries_secs)",
    "saver": "[supervised(lambda it, s: type(it.saver)), supervised(lambda it, s: it.saver, saver=None)]",
    "session_manager": "supervised(lambda it, s: type(it.session_manager))",
    "start_standard_services": (
        "supervised(lambda it, s: [s.run(it.init_op), len(it.start_standard_services(s)), it.stop()],"
        " path('q'))"
    ),
    "summary_op": "supervised(lambda it, s: it.summary_op.dtype)",
    "summary_writer": "supervised(lambda it, s: type(it.summary_writer), path('w'))",
    **{
        name: call
        for names, call in {
            "Loop loop": "supervised(looping)",
            "PrepareSession prepare_or_wait_for_session": (
                "supervised(lambda it, s: it.METHOD('', None, False, 9, False).run('after:0'))"
            ),
            "RequestStop request_stop": "supervised(lambda it, s: [it.METHOD(None), it.coord.should_stop()])",
            "ShouldStop should_stop": (
                "supervised(lambda it, s: [it.METHOD(), it.coord.request_stop(), it.METHOD()])"
            ),
            "StartQueueRunners start_queue_runners": "supervised(lambda it, s: it.METHOD(s, []))",
            "Stop stop": "supervised(lambda it, s: [it.METHOD([], True, True), it.should_stop()])",
            "StopOnException stop_on_exception": "supervised(failing)",
            "SummaryComputed summary_computed": "supervised(summed, path('s'), summary_op=None)",
            "WaitForStop wait_for_stop": "supervised(waited)",
        }.items()
        for name, call in ((each, call.replace("METHOD", each)) for each in names.split())
    },
    "StartStandardServices": (
        "supervised(lambda it, s: [s.run(it.init_op), len(it.StartStandardServices(s)), it.stop()],"
        " path('q'))"
    ),
}
TABLES = [
    ClassCalls("tf.train.Coordinator", COORDINATORS, COORDINATOR),
    ClassCalls("tf.train.LooperThread", THREADS, THREAD),
    ClassCalls("tf.train.Scaffold", SCAFFOLDS, SCAFFOLD),
    ClassCalls("tf.train.SessionManager", MANAGERS, MANAGER),
    ClassCalls("tf.train.WorkerSessionCreator", WORKERS, WORKER),
    ClassCalls("tf.train.Supervisor", SUPERVISORS, SUPERVISOR),
]
