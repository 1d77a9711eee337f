"""Calls of the public members of `tf.train`'s optimisers, averages and queue runners."""

from class_calls import ClassCalls, product

MEMBERS = {
    "GATE_GRAPH": "type(it).GATE_GRAPH",
    "GATE_NONE": "type(it).GATE_NONE",
    "GATE_OP": "type(it).GATE_OP",
    "__init__": "[type(it).__name__, it.get_name()]",
    "apply_gradients": "run(apply, apply, [w, step])",
    "compute_gradients": "make().compute_gradients(loss, [w], grad_loss=tf.constant(2.0))",
    "get_name": "it.get_name()",
    "get_slot": "[run(apply, it.get_slot(w, name)) for name in it.get_slot_names()]",
    "get_slot_names": "it.get_slot_names()",
    "minimize": "run(minimize, minimize, [u, step])",
}


def made_by(call: str, before: str = "") -> str:
    """A program with `make`, an optimiser `it` that it made, a variable `w`, and two steps that train."""
    return f"""
w = tf.Variable([1.0, -2.0, 0.5], name='w')
u = tf.Variable([1.0, 2.0], name='u')
step = tf.Variable(0, trainable=False, name='step', dtype=tf.int64)
loss = tf.reduce_sum(tf.square(w))
train = tf.train
{before}
make = lambda: {call}
it = make()
apply = it.apply_gradients(it.compute_gradients(loss, [w]), global_step=step)
minimize = make().minimize(tf.reduce_sum(u * u * u), step, [u])
"""


DESCENT = """
class Descent(train.Optimizer):
    def __init__(self):
        train.Optimizer.__init__(self, use_locking=False, name='Descent')
    def _create_slots(self, variables):
        for each in variables:
            self._zeros_slot(each, 'seen', self._name)
    def _apply_dense(self, grad, var):
        seen = self.get_slot(var, 'seen')
        with tf.control_dependencies([seen.assign_add(grad)]):
            return var.assign_sub(0.25 * grad).op
"""
SETUPS = {
    "AdadeltaOptimizer": made_by("train.AdadeltaOptimizer(0.5, 0.9, 1e-4)"),
    "AdagradDAOptimizer": made_by("train.AdagradDAOptimizer(0.5, step, 0.2, 0.01, 0.01)"),
    "AdagradOptimizer": made_by("train.AdagradOptimizer(0.5, 0.2)"),
    "AdamOptimizer": made_by("train.AdamOptimizer(0.1, 0.8, 0.99)"),
    "FtrlOptimizer": made_by("train.FtrlOptimizer(0.5, -0.5, 0.2, 0.01, 0.02)"),
    "GradientDescentOptimizer": made_by("train.GradientDescentOptimizer(0.1)"),
    "MomentumOptimizer": made_by("train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)"),
    "Optimizer": made_by("Descent()", DESCENT),
    "ProximalAdagradOptimizer": made_by("train.ProximalAdagradOptimizer(0.5, 0.2, 0.01, 0.02)"),
    "ProximalGradientDescentOptimizer": made_by("train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02)"),
    "RMSPropOptimizer": made_by("train.RMSPropOptimizer(0.1, 0.8, 0.5, 1e-4, centered=True)"),
}
SYNC = """
w = tf.Variable([1.0, -2.0], name='w')
step = tf.Variable(0, trainable=False, name='step')
it = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 1, 1, name='sync')
gradients = it.compute_gradients(tf.reduce_sum(tf.square(w)))
apply = it.apply_gradients(gradients, global_step=step)
runner = it.get_chief_queue_runner()
tokens = it.get_init_tokens_op()
hook = it.make_session_run_hook(True)
def trained(train, variables):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([it.local_step_init_op, it.chief_init_op])
        session.run(tokens)
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        session.run(train)
        session.run(train)
        values = session.run(variables)
        coordinator.request_stop()
        session.close()
    return values
"""
SYNC_CALLS = {
    "GATE_GRAPH": "it.GATE_GRAPH",
    "GATE_NONE": "it.GATE_NONE",
    "GATE_OP": "it.GATE_OP",
    "__init__": "[type(it).__name__, it.get_name()]",
    "apply_gradients": "trained(apply, w)",
    "compute_gradients": "gradients",
    "get_chief_queue_runner": "[type(runner).__name__, [each.type for each in runner.enqueue_ops]]",
    "get_init_tokens_op": "tokens.type",
    "get_name": "it.get_name()",
    "get_slot": "it.get_slot(w, 'momentum')",
    "get_slot_names": "it.get_slot_names()",
    "make_session_run_hook": "[callable(getattr(hook, name)) for name in ['begin', 'after_create_session']]",
    "minimize": (
        "tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1).minimize("
        "tf.reduce_sum(w), step, [w]).op.type"
    ),
}
AVERAGE = """
w = tf.Variable([1.0, -2.0], name='w')
it = tf.train.ExponentialMovingAverage(0.9, name='mean')
maintain = it.apply([w])
change = tf.assign(w, [3.0, 4.0])
"""
AVERAGE_CALLS = {
    "__init__": "tf.train.ExponentialMovingAverage(0.9, 3, True, 'mean').name",
    "apply": "run(change, maintain, it.average(w))",
    "average": "it.average(w)",
    "average_name": "it.average_name(w)",
    "variables_to_restore": "sorted((key, v.op.name) for key, v in it.variables_to_restore().items())",
}
QUEUE = """
queue = tf.FIFOQueue(10, tf.int32, [[]], name='queue')
enqueue = queue.enqueue_many([[1, 2, 3]], name='fill')
close, cancel = queue.close(name='close'), queue.close(cancel_pending_enqueues=True, name='cancel')
it = runners.QueueRunner(queue, [enqueue], close, cancel, (tf.errors.OutOfRangeError,))
counted = tf.FIFOQueue(10, tf.int64, [[]])
number = tf.Variable(0, dtype=tf.int64)
limited = runners.QueueRunner(counted, [counted.enqueue(number.count_up_to(4))])
def filled(start):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = start(session, coordinator)
        taken = [int(session.run(counted.dequeue())) for _ in range(4)]
        coordinator.request_stop()
        coordinator.join(threads)
        return [len(threads), taken, coordinator.should_stop()]
def proto_names(proto):
    return [proto.queue_name, list(proto.enqueue_op_name), proto.close_op_name, proto.cancel_op_name]
"""
QUEUE_CALLS = {
    "__init__": "[type(it).__name__, it.name]",
    "cancel_op": "it.cancel_op is cancel",
    "close_op": "it.close_op is close",
    "create_threads": "filled(lambda session, coord: limited.create_threads(session, coord, True, True))",
    "enqueue_ops": "[each.name for each in it.enqueue_ops]",
    "exceptions_raised": "it.exceptions_raised",
    "from_proto": "[each.name for each in runners.QueueRunner.from_proto(it.to_proto()).enqueue_ops]",
    "name": "it.name",
    "queue": "it.queue is queue",
    "queue_closed_exception_types": "it.queue_closed_exception_types",
    "to_proto": "proto_names(it.to_proto())",
}
FUNCTION_CALLS = {
    "add_queue_runner": "[runners.add_queue_runner(it, 'mine'), tf.get_collection('mine')[0] is it][1]",
    "start_queue_runners": ("[runners.add_queue_runner(limited), filled(runners.start_queue_runners)][1]"),
}
TABLES = [
    *product("tf.train", SETUPS, MEMBERS, {}),
    ClassCalls("tf.train.SyncReplicasOptimizer", SYNC, SYNC_CALLS),
    ClassCalls("tf.train.ExponentialMovingAverage", AVERAGE, AVERAGE_CALLS),
    *(
        table
        for module in ["tf.train", "tf.train.queue_runner"]
        for table in [
            ClassCalls(f"{module}.QueueRunner", f"runners = {module}{QUEUE}", QUEUE_CALLS),
            ClassCalls(module, f"runners = {module}{QUEUE}", FUNCTION_CALLS),
        ]
    ),
]
