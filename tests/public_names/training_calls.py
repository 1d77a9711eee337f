"""Calls of the functions of `tf.train` that make tensors, steps, pipelines and files of checkpoints."""

from class_calls import ClassCalls

RATES = """
step = tf.constant(7)
def alone(make):
    with tf.Graph().as_default():
        return make()
"""
SCHEDULES = {
    "exponential_decay": (
        "[tf.train.exponential_decay(0.5, step, 3, 0.9, True, 'a'), tf.train.exponential_decay(0.5, step,"
        " 3, 0.9)]"
    ),
    "inverse_time_decay": (
        "[tf.train.inverse_time_decay(0.5, step, 3, 0.9, True, 'a'), tf.train.inverse_time_decay(0.5,"
        " step, 3, 0.9)]"
    ),
    "natural_exp_decay": (
        "[tf.train.natural_exp_decay(0.5, step, 3, 0.9, True, 'a'), tf.train.natural_exp_decay(0.5, step,"
        " 3, 0.9)]"
    ),
    "piecewise_constant": (
        "[tf.train.piecewise_constant(step, [3, 7], [1.0, 2.0, 3.0], 'a'),"
        " tf.train.piecewise_constant(step + 1, [3, 7], [1.0, 2.0, 3.0])]"
    ),
    "polynomial_decay": (
        "[tf.train.polynomial_decay(0.5, step, 3, 0.1, 2.0, True, 'a'), tf.train.polynomial_decay(0.5,"
        " step, 9)]"
    ),
}
ASCENT = {
    "sdca_fprint": "tf.train.sdca_fprint(['a', 'bc'], 'a')",
    "sdca_shrink_l1": (
        "alone(lambda: [[s.run(tf.train.sdca_shrink_l1([w], 0.5, 2.0)), s.run(w)]"
        " for w in [tf.Variable([1.0, -0.1, -3.0], use_resource=False)] for s in [started()]])"
    ),
}
STEPS = {
    "assert_global_step": (
        "alone(lambda: [tf.train.assert_global_step(tf.train.create_global_step()),"
        " len(tf.global_variables())])"
    ),
    "create_global_step": (
        "alone(lambda: [[s.op.name, s.dtype.base_dtype, s.shape, tf.get_collection('global_step') == [s]]"
        " for s in [tf.train.create_global_step(tf.get_default_graph())]])"
    ),
    "get_global_step": (
        "alone(lambda: [tf.train.get_global_step(),"
        " tf.train.create_global_step() is tf.train.get_global_step()])"
    ),
    "get_or_create_global_step": (
        "alone(lambda: tf.train.get_or_create_global_step() is tf.train.get_or_create_global_step(None))"
    ),
    "global_step": (
        "alone(lambda: [[tf.train.global_step(s, v), s.run(v.assign_add(5)), tf.train.global_step(s, v)]"
        " for v in [tf.train.create_global_step()] for s in [started()]])"
    ),
}
READY = """
def started():
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session
"""
PIPES = (
    READY
    + """
def alone(make):
    with tf.Graph().as_default():
        return make()
def flowing(make, count=3):
    with tf.Graph().as_default():
        made = make()
        fetched = made.dequeue() if isinstance(made, tf.QueueBase) else made
        runners = [[r.queue.name, len(r.enqueue_ops)] for r in tf.get_collection('queue_runners')]
        names = sorted(each.name for each in tf.get_collection('summaries'))
        coordinator = tf.train.Coordinator()
        with started() as session:
            threads = tf.train.start_queue_runners(session, coordinator)
            found = []
            try:
                for _ in range(count):
                    found.append(session.run(fetched))
            except tf.errors.OutOfRangeError:
                found.append('end')
            coordinator.request_stop()
            session.run([r.cancel_op for r in tf.get_collection('queue_runners')])
            coordinator.join(threads, stop_grace_period_secs=20)
        return [found, runners, names]
def within(make, values, count=2):
    found, runners, names = flowing(make, count)
    return [list(np.shape(found)), bool(np.isin(found, values).all()), runners, names]
def example():
    return tf.train.range_input_producer(6, None, False).dequeue()
def examples():
    return [[example()], [tf.constant(9)]]
"""
)
PRODUCERS = {
    "batch": (
        "[flowing(lambda: tf.train.batch([example(), 'b'], 2, 1, 8, False, [[], []], False, True, 's', 'a')),"
        " flowing(lambda: tf.train.batch([example()], batch_size=4)),"
        " flowing(lambda: tf.train.batch({'k': tf.reshape(example(), [1])}, 2, dynamic_pad=True)['k'], 1)]"
    ),
    "batch_join": (
        "[within(lambda: tf.train.batch_join(examples(), 4, 16, False, [[]], False, True, 's', 'a'), [0,"
        " 1, 2, 3, 4, 5, 9]),"
        " flowing(lambda: tf.train.batch_join([[example()]], 2))]"
    ),
    "input_producer": (
        "[flowing(lambda: tf.train.input_producer([5, 6], None, 1, False, 3, 8, 's', 'sum', 'a'), 4),"
        " within(lambda: tf.train.input_producer([5, 6]), [5, 6])]"
    ),
    "limit_epochs": "flowing(lambda: tf.train.limit_epochs(tf.constant([1, 2]), 2, 'a'), 3)",
    "maybe_batch": (
        "[flowing(lambda: [tf.train.maybe_batch([x], x > 2, 2, 1, 8, False, [[]], False, True, 's', 'a')"
        " for x in [example()]][0], 2), flowing(lambda: tf.train.maybe_batch([[1, 2, 3]], [True, False,"
        " True], 2,"
        " enqueue_many=True), 1)]"
    ),
    "maybe_batch_join": (
        "within(lambda: [tf.train.maybe_batch_join([[x], [9]], x > 2, 2, 8, False, [[]], False, True,"
        " 's', 'a')"
        " for x in [example()]][0], [3, 4, 5, 9])"
    ),
    "maybe_shuffle_batch": (
        "within(lambda: [tf.train.maybe_shuffle_batch([x], 2, 8, 2, x > 2, 1, 3, False, [[]], True, 's', 'a')"
        " for x in [example()]][0], [3, 4, 5])"
    ),
    "maybe_shuffle_batch_join": (
        "within(lambda: [tf.train.maybe_shuffle_batch_join([[x], [9]], 2, 8, 2, x > 2, 3, False, [[]],"
        " True, 's', 'a')"
        " for x in [example()]][0], [3, 4, 5, 9])"
    ),
    "range_input_producer": (
        "[flowing(lambda: tf.train.range_input_producer(3, 2, False, 3, 8, 's', 'a'), 7),"
        " within(lambda: tf.train.range_input_producer(3), [0, 1, 2])]"
    ),
    "shuffle_batch": (
        "within(lambda: tf.train.shuffle_batch([example()], 2, 8, 2, 1, 3, False, [[]], True, 's', 'a'),"
        " range(6))"
    ),
    "shuffle_batch_join": (
        "within(lambda: tf.train.shuffle_batch_join(examples(), 2, 8, 2, 3, False, [[]], True, 's', 'a'),"
        " [0, 1, 2, 3, 4, 5, 9])"
    ),
    "slice_input_producer": (
        "[flowing(lambda: tf.train.slice_input_producer([[5, 6], [[1], [2]]], 1, False, 3, 8, 's', 'a')),"
        " within(lambda: tf.train.slice_input_producer([[5, 6]]), [5, 6])]"
    ),
    "string_input_producer": (
        "[flowing(lambda: tf.train.string_input_producer(['x', 'y'], 1, False, 3, 8, 's', 'a')),"
        " within(lambda: tf.train.string_input_producer(['x', 'y']), [b'x', b'y'])]"
    ),
    "add_queue_runner": (
        "alone(lambda: [[tf.train.add_queue_runner(tf.train.QueueRunner(q, [q.enqueue(1)]), 'c'),"
        " len(tf.get_collection('c'))] for q in [tf.FIFOQueue(2, tf.int32)]])"
    ),
    "queue_runner": "tf.train.queue_runner.QueueRunner is tf.train.QueueRunner",
    "start_queue_runners": (
        "alone(lambda: [[t.daemon, t.is_alive()] for b in [example()] for s in [started()]"
        " for t in tf.train.start_queue_runners(s, None, True, False, 'queue_runners')])"
    ),
}
RUNNERS = {
    "add_queue_runner": "tf.train.queue_runner.add_queue_runner is tf.train.add_queue_runner",
    "start_queue_runners": "tf.train.queue_runner.start_queue_runners is tf.train.start_queue_runners",
}
FILES = (
    READY
    + """
import os, tempfile
folder = tempfile.mkdtemp()
def alone(make):
    with tf.Graph().as_default():
        return make()
def path(*parts):
    return os.path.join(folder, *parts)
def short(text):
    return text.replace(folder, 'F') if text else text
def save():
    v = tf.Variable([1.0, 2.0], name='v')
    w = tf.Variable(3, name='s/w')
    return tf.train.Saver().save(started(), path('model'), 5)
prefix = alone(save)
def restored(make):
    v = tf.get_variable('v', [2])
    w = tf.get_variable('t/w', [], tf.int32)
    make()
    return [run(v), run(w)]
"""
)
CHECKPOINTS = {
    "NewCheckpointReader": "tf.train.NewCheckpointReader(prefix).get_variable_to_shape_map()",
    "checkpoint_exists": "[tf.train.checkpoint_exists(each) for each in [prefix, path('none')]]",
    "export_meta_graph": (
        "alone(lambda: [[len(m.graph_def.node), sorted(m.collection_def),"
        " os.path.exists(path('m'))] for _ in [save()]"
        " for m in [tf.train.export_meta_graph(path('m'), collection_list=['variables'], as_text=True,"
        " clear_devices=True)]])"
    ),
    "generate_checkpoint_state_proto": (
        "[[short(s.model_checkpoint_path), list(map(short, s.all_model_checkpoint_paths))] for s in"
        " [tf.train.generate_checkpoint_state_proto(folder, path('b'), [path('a'), path('b')])]]"
    ),
    "get_checkpoint_mtimes": (
        "[each > 1e9 for each in tf.train.get_checkpoint_mtimes([prefix, path('none')])]"
    ),
    "get_checkpoint_state": (
        "[short(tf.train.get_checkpoint_state(folder).model_checkpoint_path),"
        " tf.train.get_checkpoint_state(folder, 'no')]"
    ),
    "import_meta_graph": (
        "alone(lambda: [[tf.train.import_meta_graph(prefix + '.meta', True, 'i').restore(s, prefix),"
        " s.run('i/v:0'), [v.name for v in tf.global_variables()]] for s in [tf.Session()]])"
    ),
    "init_from_checkpoint": (
        "alone(lambda: restored(lambda: tf.train.init_from_checkpoint(prefix, {'v': 'v', 's/': 't/'})))"
    ),
    "latest_checkpoint": (
        "[short(tf.train.latest_checkpoint(folder)), tf.train.latest_checkpoint(folder, 'none')]"
    ),
    "list_variables": "tf.train.list_variables(prefix)",
    "load_checkpoint": "tf.train.load_checkpoint(folder).get_tensor('v')",
    "load_variable": "tf.train.load_variable(prefix, 's/w')",
    "match_filenames_once": (
        "alone(lambda: [[short(f.decode()) for f in s.run(m)] for m in"
        " [tf.train.match_filenames_once(path('model*.index'), 'a')] for s in [started()]])"
    ),
    "update_checkpoint_state": (
        "[tf.train.update_checkpoint_state(folder, path('c'), [path('c')], 'other'),"
        " short(tf.train.get_checkpoint_state(folder, 'other').model_checkpoint_path)]"
    ),
    "write_graph": (
        "[short(tf.train.write_graph(tf.get_default_graph(), folder, 'g', True)), os.path.exists(path('g')),"
        " short(tf.train.write_graph(tf.GraphDef(), folder, 'h', as_text=False))]"
    ),
    "summary_iterator": (
        "[[e.WhichOneof('what') for e in tf.train.summary_iterator(path('log', f))] for w in"
        " [tf.summary.FileWriter(path('log'))] for _ in [w.add_summary(tf.Summary(), 3), w.close()][:1]"
        " for f in os.listdir(path('log'))]"
    ),
}
TABLES = [
    ClassCalls("tf.train", READY + RATES, {**SCHEDULES, **ASCENT, **STEPS}),
    ClassCalls("tf.train", PIPES, PRODUCERS),
    ClassCalls("tf.train.queue_runner", "", RUNNERS),
    ClassCalls("tf.train", FILES, CHECKPOINTS),
]
