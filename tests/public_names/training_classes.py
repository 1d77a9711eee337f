"""Members of the classes of `tf.train` that save, run sessions and hook into them."""

from class_calls import ClassCalls

FOLDER = """
import os, tempfile
folder = tempfile.mkdtemp()
def path(*parts):
    return os.path.join(folder, *parts)
def check(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
def started(*others):
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session
"""
HOOKED = (
    FOLDER
    + """
def values(make, member):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        tf.summary.scalar('rate', tf.identity(0.5, name='rate'))
        after = tf.assign_add(step, 1)
        hook = make()
        found = getattr(hook, 'final_ops_values', None) if member == 'final_ops_values' else None
        if member == '__init__':
            return isinstance(hook, tf.train.SessionRunHook)
        original, calls = getattr(hook, member, None), []
        if member != 'final_ops_values':
            def seen(*arguments, **named):
                result = original(*arguments, **named)
                calls.append(type(result).__name__)
                return result
            setattr(hook, member, seen)
        try:
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                while not session.should_stop() and session.run(after) < 3:
                    pass
        except RuntimeError as error:
            calls.append('failed')
        return [calls, hook.final_ops_values] if member == 'final_ops_values' else calls
"""
)
HOOKS = {
    "CheckpointSaverHook": "lambda: tf.train.CheckpointSaverHook(path('c'), save_steps=2)",
    "FeedFnHook": (
        "lambda: [tf.train.FeedFnHook(lambda: {p: 2}) for p in [tf.placeholder_with_default(1, [])]][0]"
    ),
    "FinalOpsHook": "lambda: tf.train.FinalOpsHook('rate:0')",
    "GlobalStepWaiterHook": "lambda: tf.train.GlobalStepWaiterHook(0)",
    "LoggingTensorHook": "lambda: tf.train.LoggingTensorHook(['rate:0'], 2)",
    "NanTensorHook": "lambda: tf.train.NanTensorHook('rate:0')",
    "ProfilerHook": "lambda: tf.train.ProfilerHook(2, output_dir=tempfile.mkdtemp())",
    "SessionRunHook": "lambda: tf.train.SessionRunHook()",
    "StepCounterHook": "lambda: tf.train.StepCounterHook(2, output_dir=path('s'))",
    "StopAtStepHook": "lambda: tf.train.StopAtStepHook(2)",
    "SummarySaverHook": (
        "lambda: tf.train.SummarySaverHook(2, output_dir=path('y'), summary_op=tf.summary.merge_all())"
    ),
}
STEPS = ("__init__", "after_create_session", "after_run", "before_run", "begin", "end")
HOOK_TABLES = [
    ClassCalls(
        f"tf.train.{name}",
        HOOKED + f"make = {make}\n",
        {
            step: f"values(make, '{step}')"
            for step in STEPS + ("final_ops_values",) * (name == "FinalOpsHook")
        },
    )
    for name, make in HOOKS.items()
]
LISTENER = """
it = tf.train.CheckpointSaverListener()
"""
LISTENER_MEMBERS = {
    "__init__": "isinstance(it, tf.train.CheckpointSaverListener)",
    "after_save": "it.after_save(None, 3)",
    "before_save": "it.before_save(None, 3)",
    "begin": "it.begin()",
    "end": "it.end(None, 3)",
}
SAVERS = (
    FOLDER
    + """
def saving(work, **options):
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0], name='v')
        it = tf.train.Saver(**options)
        with started() as session:
            return work(it, session)
def short(each):
    return each.replace(folder, 'F')
def several(it, session):
    return [short(it.save(session, path('m'), step)) for step in [1, 2, 3]]
def restored(it, session):
    at = it.save(session, path('r'))
    session.run('v/Assign:0', {'v/initial_value:0': [0.0, 0.0]})
    return [session.run('v:0'), it.restore(session, at), session.run('v:0')]
def fields(proto):
    names = [proto.filename_tensor_name, proto.restore_op_name]
    return [proto.max_to_keep, proto.sharded, proto.version] + names
def built():
    with tf.Graph().as_default():
        v = tf.Variable(1.0, name='v')
        it = tf.train.Saver(defer_build=True)
        w = tf.Variable(1.0, name='w')
        it.build()
        saves = [o.name for o in tf.get_default_graph().get_operations() if o.type == 'SaveV2']
        return [fields(it.saver_def), saves]
"""
)
SAVER = {
    "__init__": (
        "saving(lambda it, s: fields(it.saver_def), reshape=True, sharded=False, max_to_keep=3,"
        " keep_checkpoint_every_n_hours=2.0, name='n', restore_sequentially=True, allow_empty=True,"
        " pad_step_number=True)"
    ),
    "as_saver_def": "saving(lambda it, s: fields(it.as_saver_def()))",
    "build": "built()",
    "export_meta_graph": (
        "saving(lambda it, s: it.export_meta_graph(path('meta'), ['variables'], True).saver_def.version)"
    ),
    "from_proto": "saving(lambda it, s: fields(tf.train.Saver.from_proto(it.to_proto()).saver_def))",
    "last_checkpoints": (
        "saving(lambda it, s: [several(it, s), list(map(short, it.last_checkpoints))], max_to_keep=2)"
    ),
    "recover_last_checkpoints": (
        "saving(lambda it, s: [several(it, s), it.set_last_checkpoints([]),"
        " it.recover_last_checkpoints([path('m-2'), path('m-3'), path('none')]), list(map(short,"
        " it.last_checkpoints))])"
    ),
    "restore": "saving(restored)",
    "save": (
        "saving(lambda it, s: [several(it, s), short(it.save(s, path('o'), 7, 'other', 'mm', False)),"
        " sorted(f for f in os.listdir(folder) if f[0] == 'o')])"
    ),
    "set_last_checkpoints": (
        "saving(lambda it, s: [it.set_last_checkpoints([path('a'), path('b')]), list(map(short,"
        " it.last_checkpoints))])"
    ),
    "set_last_checkpoints_with_time": (
        "saving(lambda it, s: [it.set_last_checkpoints_with_time([(path('a'), 3.0)]), list(map(short,"
        " it.last_checkpoints))])"
    ),
    "to_proto": "saving(lambda it, s: [fields(it.to_proto()), it.to_proto('none')])",
}
MONITORED = (
    FOLDER
    + """
def monitored(work):
    with tf.Graph().as_default():
        after = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        with make() as session:
            return work(session, after)
def closing():
    with tf.Graph().as_default():
        after = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        session = make()
        return [session.run(after), session.close(), isinstance(check(lambda: session.run(after)), str)]
def stepping(step_context):
    found = step_context.session.run('global_step:0') + step_context.run_with_hooks('global_step:0')
    step_context.request_stop()
    return found
def within(step_context):
    return [type(step_context).__name__, isinstance(step_context.session, tf.Session)]
def hooked(step_context):
    return step_context.run_with_hooks('global_step:0')
def ended(step_context):
    step_context.request_stop()
"""
)
SESSION = {
    "StepContext": "monitored(lambda s, after: s.run_step_fn(within))",
    "StepContext.__init__": (
        "monitored(lambda s, after: s.run_step_fn(lambda step_context: step_context is not None))"
    ),
    "StepContext.request_stop": (
        "monitored(lambda s, after: [check(lambda: s.run_step_fn(ended)), s.should_stop()])"
    ),
    "StepContext.run_with_hooks": "monitored(lambda s, after: s.run_step_fn(hooked))",
    "StepContext.session": "monitored(lambda s, after: s.run_step_fn(within))",
    "__init__": "monitored(lambda s, after: s is not None)",
    "close": "closing()",
    "graph": "monitored(lambda s, after: s.graph is after.graph)",
    "run": "monitored(lambda s, after: [s.run(after), s.run([after], {}, None, None)])",
    "run_step_fn": "monitored(lambda s, after: [check(lambda: s.run_step_fn(stepping)), s.should_stop()])",
    "should_stop": "monitored(lambda s, after: [s.should_stop(), s.run(after), s.should_stop()])",
}
RAW = {"raw_session": "monitored(lambda s, after: isinstance(s.raw_session(), tf.Session))"}
RECORDS = {
    "tf.train.SessionRunArgs": ("tf.train.SessionRunArgs('f', {'k': 1}, 3)", "feed_dict fetches options"),
    "tf.train.SessionRunValues": ("tf.train.SessionRunValues(1, 2, 3)", "options results run_metadata"),
}
RECORD_TABLES = [
    ClassCalls(
        name,
        f"it = {make}\n",
        {
            "__init__": "list(it)[:1]",
            "count": "[it.count(3), it.count('none')]",
            "index": "it.index(3)",
            **{field: f"it.{field}" for field in fields.split()},
        },
    )
    for name, (make, fields) in RECORDS.items()
]
CONTEXT = {
    "__init__": "tf.train.SessionRunContext('a', None).original_args",
    "original_args": "tf.train.SessionRunContext('a', None).original_args",
    "request_stop": "[[c.request_stop(), c.stop_requested] for c in [tf.train.SessionRunContext('a', None)]]",
    "session": "tf.train.SessionRunContext('a', 5).session",
    "stop_requested": "tf.train.SessionRunContext('a', None).stop_requested",
}
TIMER = {
    "__init__": (
        "[tf.train.SecondOrStepTimer(None, 2).last_triggered_step(),"
        " check(lambda: tf.train.SecondOrStepTimer())]"
    ),
    "last_triggered_step": "[[t.update_last_triggered_step(3), t.last_triggered_step()] for t in [make()]]",
    "reset": "[[t.update_last_triggered_step(3), t.reset(), t.last_triggered_step()] for t in [make()]]",
    "should_trigger_for_step": (
        "[[t.should_trigger_for_step(3),"
        " t.update_last_triggered_step(3)[0:0]] + [t.should_trigger_for_step(n)"
        " for n in [3, 4, 5]] for t in [make()]]"
    ),
    "update_last_triggered_step": (
        "[[t.update_last_triggered_step(3), t.update_last_triggered_step(5)[1]] for t in [make()]]"
    ),
}
ERROR = {
    "__init__": "str(tf.train.NanLossDuringTrainingError())",
    "args": "[len(tf.train.NanLossDuringTrainingError('a').args)]",
}
CREATORS = (
    FOLDER
    + """
def created(make):
    with tf.Graph().as_default():
        tf.Variable(3.0, name='v')
        return make().create_session().run('v:0')
"""
)
CREATOR_TABLES = [
    ClassCalls(
        "tf.train.ChiefSessionCreator",
        CREATORS,
        {
            "__init__": (
                "created(lambda: tf.train.ChiefSessionCreator(tf.train.Scaffold(), '', None, path('c'),"
                " None))"
            ),
            "create_session": "created(lambda: tf.train.ChiefSessionCreator())",
        },
    ),
    ClassCalls(
        "tf.train.SessionCreator",
        CREATORS,
        {
            "__init__": "issubclass(tf.train.ChiefSessionCreator, tf.train.SessionCreator)",
            "create_session": "check(lambda: tf.train.SessionCreator().create_session())",
        },
    ),
]
TABLES = [
    *HOOK_TABLES,
    ClassCalls("tf.train.CheckpointSaverListener", LISTENER, LISTENER_MEMBERS),
    ClassCalls("tf.train.Saver", SAVERS, SAVER),
    ClassCalls("tf.train.MonitoredSession", MONITORED + "make = tf.train.MonitoredSession\n", SESSION),
    ClassCalls(
        "tf.train.SingularMonitoredSession",
        MONITORED + "make = tf.train.SingularMonitoredSession\n",
        {**SESSION, **RAW},
    ),
    *RECORD_TABLES,
    ClassCalls("tf.train.SessionRunContext", "", CONTEXT),
    ClassCalls(
        "tf.train.SecondOrStepTimer", FOLDER + "make = lambda: tf.train.SecondOrStepTimer(None, 2)\n", TIMER
    ),
    ClassCalls("tf.train.NanLossDuringTrainingError", "", ERROR),
    *CREATOR_TABLES,
]
