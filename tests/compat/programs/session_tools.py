"""What looks at and steers a session: gradients registered and overridden, py_func, Print, Assert, partial runs, traces."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.client import device_lib, timeline
from tensorflow.python.framework import function, ops
from tensorflow.python.ops import gen_nn_ops, math_ops

folder = tempfile.mkdtemp()

# ---- gradients: registered, overridden, given by py_func


@tf.RegisterGradient("GuidedRelu")
def _guided_relu_grad(op, grad):
    gate_f = tf.cast(op.outputs[0] > 0, "float32")
    gate_r = tf.cast(grad > 0, "float32")
    return gate_f * gate_r * grad


@ops.RegisterGradient("QuantizeGrad")
def _quantize_grad(op, grad):
    return tf.clip_by_value(tf.identity(grad), -1, 1)


def binarize(x):
    g = tf.get_default_graph()
    with ops.name_scope("Binarized") as name:
        with g.gradient_override_map({"Sign": "Identity"}):
            return tf.sign(x, name=name)


def py_func(func, inp, Tout, stateful=True, name=None, grad=None):
    rnd_name = 'PyFuncGrad' + str(np.random.RandomState(0).randint(0, 1000000))
    tf.RegisterGradient(rnd_name)(grad)
    with tf.get_default_graph().gradient_override_map({"PyFunc": rnd_name, "PyFuncStateless": rnd_name}):
        return tf.py_func(func, inp, Tout, stateful=stateful, name=name)


class FlipGradientBuilder(object):
    def __init__(self):
        self.num_calls = 0

    def __call__(self, x, l=1.0):
        grad_name = "FlipGradient%d" % self.num_calls

        @ops.RegisterGradient(grad_name)
        def _flip_gradients(op, grad):
            return [tf.negative(grad) * l]
        g = tf.get_default_graph()
        with g.gradient_override_map({"Identity": grad_name}):
            y = tf.identity(x)
        self.num_calls += 1
        return y


flip_gradient = FlipGradientBuilder()
sess = tf.InteractiveSession()
x = tf.placeholder(tf.float32, [4], name="x")
feed = {x: [-2., -.5, .5, 2.]}
with tf.get_default_graph().gradient_override_map({"Relu": "GuidedRelu"}):
    guided = tf.nn.relu(x)
print(sess.run(tf.gradients(guided * [1., -1., -1., 1.], x), feed)[0].tolist())
print(sess.run(tf.gradients(binarize(x) * 3., x), feed)[0].tolist())
print(sess.run(tf.gradients(flip_gradient(x, .5) ** 2 + flip_gradient(x), x), feed)[0].tolist())
cube = py_func(lambda v: v ** 3, [x], [tf.float32], name="cube", grad=lambda op, g: g * 3 * tf.square(op.inputs[0]))[0]
print(sess.run([cube, tf.gradients(cube, x)[0]], feed)[1].tolist())


@tf.custom_gradient
def log1pexp(v):
    e = tf.exp(v)
    return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


print(["%.4f" % v for v in sess.run(tf.gradients(log1pexp(x * 50.), x), feed)[0]])


@function.Defun(tf.float32, tf.float32)
def square_gradient(v, dy):
    return 10. * v * dy


@function.Defun(tf.float32, grad_func=square_gradient)
def square(v):
    return v * v


print(sess.run([square(x), tf.gradients(square(x), x)[0]], feed)[1].tolist())
hessian = tf.hessians(tf.reduce_sum(x ** 3) * x[0], x)[0]
print(sess.run(hessian, feed).astype(int).tolist())
jac = tf.stack([tf.gradients(y, x)[0] for y in tf.unstack(x ** 2 * x[1])])
print(sess.run(jac, feed).round(3).tolist())

# ---- assertions and prints
checked = tf.Assert(tf.reduce_all(x > -1), [x, "too small"], summarize=2, name="check")
with tf.control_dependencies([checked]):
    after = tf.identity(x)
try:
    sess.run(after, feed)
except tf.errors.InvalidArgumentError as error:
    print(type(error).__name__, error.op.type, "too small" in error.message)
shape_check = tf.assert_equal(tf.shape(x)[0], 4, message="four of them")
with tf.control_dependencies([shape_check, tf.assert_rank(x, 1), tf.assert_non_negative(tf.abs(x)),
                              tf.assert_type(x, tf.float32)]):
    print(sess.run(tf.Print(x, [x, tf.shape(x)], "x and shape: ", summarize=3, first_n=0), feed).tolist())
print(sess.run(tf.verify_tensor_all_finite(x, "finite") + tf.check_numerics(x, "numbers"), feed).tolist())
try:
    sess.run(tf.check_numerics(tf.log(x), "logarithm"), feed)
except tf.errors.InvalidArgumentError as error:
    print("logarithm" in str(error), error.error_code == tf.errors.INVALID_ARGUMENT)
add_check = tf.add_check_numerics_ops
print(callable(add_check), sess.run(tf.cond(tf.greater(x[3], 1), lambda: tf.constant("big"), lambda: tf.constant("small")), feed))

# ---- partial runs, callables, feeds in the middle
a, b, c = [tf.placeholder(tf.float32, [], name=n) for n in "abc"]
r1 = tf.add(a, b)
r2 = tf.multiply(r1, c)
with tf.Graph().as_default(), tf.Session() as partial:
    p, q, r = [tf.placeholder(tf.float32, []) for _ in range(3)]
    first = tf.add(p, q)
    second = tf.multiply(first, r)
    handle = partial.partial_run_setup([first, second], [p, q, r])
    res = partial.partial_run(handle, first, feed_dict={p: 1, q: 2})
    print(res, partial.partial_run(handle, second, feed_dict={r: res}))
nested = sess.run({"r": (r2, [r1, {"x": r1}])}, {r1: 5., c: 2.})
print(float(nested["r"][0]), float(nested["r"][1][1]["x"]), sess.run([], {}), sess.run(r2, {"a:0": 1, "b:0": 1, c: 4}))
step = sess.make_callable(r2, feed_list=[r1, c])
print(step(3., 4.), sess.graph.is_feedable(r1), sess.graph.unique_name("a"))
h = sess.run(tf.get_session_handle(r1), {a: 2, b: 5})
holder, value = tf.get_session_tensor(h.handle, tf.float32)
print(sess.run(value * 2, {holder: h.handle}))

# ---- traces, profiles, devices
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
run_metadata = tf.RunMetadata()
w = tf.Variable(np.ones([4, 3], np.float32), name="w")
y = tf.matmul(tf.expand_dims(x, 0), w, name="product")
sess.run(tf.global_variables_initializer())
sess.run(y, feed, options=options, run_metadata=run_metadata)
chrome = timeline.Timeline(run_metadata.step_stats).generate_chrome_trace_format(show_memory=False)
with open(os.path.join(folder, "timeline.json"), "w") as f:
    f.write(chrome)
print("traceEvents" in chrome, "product" in chrome, len(run_metadata.step_stats.dev_stats) >= 1)
writer = tf.summary.FileWriter(folder, sess.graph)
writer.add_run_metadata(run_metadata, "step%d" % 1, 1)
writer.close()
param_stats = tf.profiler.profile(sess.graph, options=dict(
    tf.profiler.ProfileOptionBuilder.trainable_variables_parameter(), output="none"))
flops = tf.profiler.profile(sess.graph, run_meta=run_metadata, cmd="op", options=dict(
    tf.profiler.ProfileOptionBuilder.float_operation(), output="none"))
print("parameters", param_stats.total_parameters, "product counted", flops.total_float_ops >= 24)
print([d.name for d in device_lib.list_local_devices()][:1], tf.test.is_gpu_available(), tf.test.gpu_device_name() == "")
print([d.device_type for d in sess.list_devices()][:1], math_ops.reduce_sum(x).op.type, gen_nn_ops.relu(x).op.type)
with tf.device(lambda op: "/cpu:0" if op.type == "VariableV2" else ""):
    v = tf.Variable(1., name="placed")
print(v.device.lower()[-5:], tf.get_default_graph().get_tensor_by_name("product:0") is y, y.op.node_def.op, y.consumers())
tf.get_default_graph().finalize()
try:
    tf.constant(1)
except RuntimeError as error:
    print("finalized" in str(error))
sess.close()
