"""Small TensorFlow 1 programs whose graphs are compared name by name with TensorFlow's.

Each is a function of the module ``tf``. It builds its forward part in the default graph and returns None or a
function that builds the rest (gradients, updates). Of the forward part every node is compared, of the whole
the variables. What is meant to differ is listed in `DIFFERENCES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Rest = Callable[[], Any] | None
PROGRAMS: dict[str, Callable[[Any], Rest]] = {}

# program -> {node: why it, or what is below it, is there in one of the two only, or of another type}.
DIFFERENCES: dict[str, dict[str, str]] = {}


def program(function: Callable[[Any], Rest]) -> Callable[[Any], Rest]:
    """Adds the program to the table."""
    PROGRAMS[function.__name__] = function
    return function


# ---- variables


@program
def reference_variables(tf: Any) -> Rest:
    tf.Variable(tf.zeros([2, 3]), name="w")
    tf.Variable([1.0, 2.0])
    tf.Variable(3)
    tf.Variable(lambda: tf.random_normal([2], seed=1), name="late", dtype=tf.float32)
    v = tf.get_variable("v", [4])
    tf.get_variable("i", [2], tf.int32)
    tf.get_variable("c", initializer=tf.constant([1.0]))
    tf.get_variable("s", [2], initializer=tf.truncated_normal_initializer(stddev=0.1))
    tf.get_variable("r", [2, 2], regularizer=lambda x: tf.reduce_sum(x * x))
    return lambda: (v.initialized_value(), tf.assign(v, [1.0, 2.0, 3.0, 4.0]), v.assign_add(v))


@program
def resource_variables(tf: Any) -> Rest:
    w = tf.Variable(tf.ones([2, 3]), name="w", use_resource=True)
    v = tf.get_variable("v", [4], use_resource=True)
    tf.get_variable("c", initializer=tf.constant([1.0]), use_resource=True)
    tf.matmul(w, tf.transpose(w))
    v + 1.0
    tf.nn.relu(v)
    v.read_value()
    v[1:]
    return lambda: (v.assign(tf.zeros([4])), w.assign_sub(w))


@program
def variable_scopes(tf: Any) -> Rest:
    with tf.variable_scope("outer", initializer=tf.constant_initializer(0.5)) as outer:
        tf.get_variable("a", [1])
        with tf.variable_scope("inner"):
            tf.get_variable("b", [1])
            tf.constant(1.0)
        with tf.variable_scope("inner"):
            tf.constant(2.0)
    with tf.variable_scope(outer, reuse=True):
        tf.add(tf.get_variable("a", [1]), 1.0)
    with tf.variable_scope(None, "default"):
        tf.get_variable("d", [1])
    with tf.variable_scope(None, "default"):
        tf.get_variable("d", [1])
    with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
        tf.get_variable("x", [1])
        tf.get_variable("x", [1])
    with tf.name_scope("named"):
        tf.get_variable("g", [1])
        tf.Variable(1.0, name="h")
    return None


@program
def partitioned_variables(tf: Any) -> Rest:
    w = tf.get_variable("w", [6, 2], partitioner=tf.fixed_size_partitioner(3))
    tf.convert_to_tensor(w)
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        tf.nn.embedding_lookup(tf.get_variable("e", [4, 2]), [0, 3])
    return None


def initializers_without_arguments(tf: Any) -> list[Any]:
    return [
        tf.zeros_initializer,
        tf.ones_initializer,
        tf.random_normal_initializer,
        tf.random_uniform_initializer,
        tf.truncated_normal_initializer,
        tf.glorot_uniform_initializer,
        tf.glorot_normal_initializer,
        tf.variance_scaling_initializer,
        tf.orthogonal_initializer,
        tf.uniform_unit_scaling_initializer,
    ]


@program
def initializers(tf: Any) -> Rest:
    for i, make in enumerate(initializers_without_arguments(tf)):
        if make is not tf.orthogonal_initializer:
            tf.get_variable(f"v{i}", [3, 4], initializer=make())
    return None


# ---- networks


@program
def softmax_regression(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    y = tf.placeholder(tf.float32, [None, 10])
    w = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    p = tf.nn.softmax(tf.matmul(x, w) + b)
    loss = tf.reduce_mean(-tf.reduce_sum(y * tf.log(p), reduction_indices=[1]))
    right = tf.equal(tf.argmax(p, 1), tf.argmax(y, 1))
    tf.reduce_mean(tf.cast(right, tf.float32))
    return lambda: tf.train.GradientDescentOptimizer(0.5).minimize(loss)


@program
def dense_layers(tf: Any) -> Rest:
    hidden = tf.placeholder(tf.float32, [8, 5], name="inputs")
    for i, (size, activation) in enumerate([(4, tf.nn.relu), (3, tf.tanh), (2, None)]):
        with tf.variable_scope(f"layer{i}"):
            w = tf.get_variable("weights", [hidden.get_shape()[1], size])
            b = tf.get_variable("biases", [size], initializer=tf.zeros_initializer())
            hidden = tf.nn.xw_plus_b(hidden, w, b)
            hidden = hidden if activation is None else activation(hidden)
    labels = tf.placeholder(tf.int64, [8])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
    loss = tf.reduce_mean(losses, name="loss")
    return lambda: tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())


@program
def convolutional_network(tf: Any) -> Rest:
    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    with tf.name_scope("conv1"):
        kernel = tf.Variable(tf.truncated_normal([5, 5, 1, 8], stddev=0.1), name="weights")
        bias = tf.Variable(tf.constant(0.1, shape=[8]), name="biases")
        maps = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, kernel, [1, 1, 1, 1], "SAME"), bias))
    pooled = tf.nn.max_pool(maps, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", name="pool1")
    normal = tf.nn.lrn(pooled, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
    averaged = tf.nn.avg_pool(normal, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    flat = tf.reshape(averaged, [-1, 7 * 7 * 8])
    logits = tf.matmul(flat, tf.get_variable("out", [7 * 7 * 8, 10]))
    loss = tf.reduce_sum(tf.nn.l2_loss(kernel) + tf.nn.l2_loss(logits))
    return lambda: tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


@program
def dropout(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [3, 4])
    keep = tf.placeholder(tf.float32, name="keep")
    tf.nn.dropout(x, keep)
    tf.nn.dropout(x, 0.5, seed=3)
    tf.nn.dropout(x, 1.0)
    return None


@program
def batch_normalization(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [None, 4, 4, 3])
    gamma = tf.get_variable("gamma", [3], initializer=tf.ones_initializer())
    beta = tf.get_variable("beta", [3], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
    averages = tf.train.ExponentialMovingAverage(0.9)

    def rest() -> None:
        with tf.control_dependencies([averages.apply([mean, variance])]):
            tf.identity(mean)

    return rest


@program
def embedding(tf: Any) -> Rest:
    table = tf.get_variable("table", [20, 4])
    ids = tf.placeholder(tf.int32, [None])
    words = tf.nn.embedding_lookup(table, ids)
    tf.nn.embedding_lookup([tf.get_variable(f"part{i}", [5, 4]) for i in range(2)], ids)
    tf.gather(table, ids)
    loss = tf.reduce_sum(words)
    return lambda: tf.train.AdagradOptimizer(0.1).minimize(loss)


@program
def losses_by_hand(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [4, 3])
    y = tf.placeholder(tf.float32, [4, 3])
    tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)
    tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)
    tf.reduce_mean(tf.squared_difference(x, y))
    tf.clip_by_value(x, -1.0, 1.0)
    tf.clip_by_norm(x, 2.0)
    tf.global_norm([x, y])
    tf.nn.l2_normalize(x, 1)
    tf.nn.zero_fraction(x)
    return None


# ---- every optimiser


def _trained_by(name: str, make: Callable[[Any], Any], use_resource: bool) -> None:
    def train(tf: Any) -> Rest:
        with tf.variable_scope("model"):
            w = tf.get_variable("w", [3, 2], use_resource=use_resource)
            table = tf.get_variable("table", [5, 2], use_resource=use_resource)
        loss = tf.reduce_sum(tf.matmul(tf.gather(table, [0, 2]), w, transpose_b=True))
        step = tf.train.get_or_create_global_step()
        return lambda: make(tf).minimize(loss, global_step=step)

    train.__name__ = f"{name}_{'resource' if use_resource else 'reference'}"
    program(train)


for _use_resource in (False, True):
    _trained_by("gradient_descent", lambda tf: tf.train.GradientDescentOptimizer(0.1), _use_resource)
    _trained_by("momentum", lambda tf: tf.train.MomentumOptimizer(0.1, 0.9), _use_resource)
    _trained_by("adam", lambda tf: tf.train.AdamOptimizer(), _use_resource)
    _trained_by("adagrad", lambda tf: tf.train.AdagradOptimizer(0.1), _use_resource)
    _trained_by("adadelta", lambda tf: tf.train.AdadeltaOptimizer(), _use_resource)
    _trained_by("rmsprop", lambda tf: tf.train.RMSPropOptimizer(0.1), _use_resource)
    _trained_by("centered", lambda tf: tf.train.RMSPropOptimizer(0.1, centered=True), _use_resource)
    _trained_by("ftrl", lambda tf: tf.train.FtrlOptimizer(0.1), _use_resource)
    _trained_by("proximal", lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1), _use_resource)
    _trained_by("proximal_adagrad", lambda tf: tf.train.ProximalAdagradOptimizer(0.1), _use_resource)


# ---- control


@program
def conditions(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [], name="x")
    w = tf.get_variable("w", [])
    y = tf.cond(x > 0.0, lambda: x * w, lambda: tf.negative(x), name="choice")
    tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
    return lambda: tf.gradients(y, [x, w])


@program
def control_dependencies(tf: Any) -> Rest:
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([a]):
        b = tf.identity(a, name="b")
        tf.no_op(name="nothing")
    tf.group(a, b, name="all")
    tf.group(a, b)
    tf.tuple([a, b])
    return None


@program
def gradients(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.get_variable("w", [3, 3])
    y = tf.sigmoid(tf.matmul(x, w)) * x
    z = tf.reduce_sum(tf.concat([y, tf.exp(x)], 1))
    return lambda: (tf.gradients(z, [x, w]), tf.gradients(z, w, name="again"), tf.stop_gradient(z))


# ---- expressions


@program
def operators(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    i = tf.placeholder(tf.int32, [2], name="i")
    b = tf.placeholder(tf.bool, [2], name="b")
    _ = x + x, x + 1.0, 1 + x, x - 2, 2 - x, x * 3, 3 * x, x / 2, 2 / x, x // 2, x % 2, x**2, 2**x, -x, abs(x)
    _ = x < 1, x <= 1, x > 1, x >= 1, i + 1, i // 2, i % 2, i / 2, x @ x
    _ = b & b, b | b, b ^ b, ~b
    return None


@program
def slicing(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [None, 4, 3], name="x")
    i = tf.placeholder(tf.int32, [])
    _ = x[0], x[1:], x[:, ::2], x[..., -1], x[:, tf.newaxis], x[i], x[:, 1:i, 0]
    tf.slice(x, [0, 1, 0], [1, 2, 3])
    tf.strided_slice(x, [0], [1])
    return None


@program
def shapes(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    known = tf.constant([[1, 2], [3, 4]], name="known")
    tf.shape(x)
    tf.shape(known)
    tf.size(known)
    tf.rank(x)
    tf.reshape(x, [-1, 2, 2])
    tf.reshape(x, tf.stack([tf.shape(x)[0], 4]))
    tf.expand_dims(x, 1)
    tf.squeeze(tf.expand_dims(x, -1), [2])
    tf.transpose(x)
    tf.transpose(x, [1, 0], name="swapped")
    tf.zeros_like(x)
    tf.ones_like(known)
    tf.zeros([2, 3])
    tf.ones(tf.shape(x))
    tf.fill([2, 2], 7.0)
    tf.range(5)
    tf.range(1.0, 2.0, 0.25, name="quarters")
    tf.linspace(0.0, 1.0, 5)
    tf.eye(3)
    return None


@program
def joining(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [4, 6], name="x")
    tf.concat([x, x], 0)
    tf.concat([x], 1)
    tf.stack([x, x], axis=1)
    tf.unstack(x)
    tf.split(x, 3, 1)
    tf.split(x, [2, 4], 1, name="uneven")
    tf.tile(x, [1, 2])
    tf.pad(x, [[1, 1], [0, 0]])
    tf.one_hot([0, 2], 3)
    tf.boolean_mask(x, [True, False, True, False])
    tf.sequence_mask([1, 3], 4)
    tf.where(x > 0.0, x, -x)
    tf.gather_nd(x, [[0, 1]])
    return None


@program
def reductions(tf: Any) -> Rest:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    for reduce in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod):
        reduce(x)
        reduce(x, 1)
        reduce(x, [0], keepdims=True, name="named")
    tf.reduce_all(x > 0.0)
    tf.reduce_any(x > 0.0, axis=-1)
    tf.reduce_logsumexp(x, 1)
    tf.argmax(x, 1)
    tf.argmin(x)
    tf.cumsum(x)
    tf.add_n([x, x])
    tf.count_nonzero(x)
    tf.norm(x)
    return None


@program
def random_values(tf: Any) -> Rest:
    tf.set_random_seed(5)
    tf.random_normal([2, 3])
    tf.random_uniform([2], 1, 9, tf.int32)
    tf.random_uniform([2], -1.0, 1.0, seed=4)
    tf.truncated_normal([2], stddev=0.1, name="t")
    tf.random_shuffle(tf.range(4))
    tf.multinomial([[0.0, 1.0]], 3)
    return None


@program
def sampled_losses(tf: Any) -> Rest:
    weights = tf.get_variable("w", [20, 4], use_resource=True)
    biases = tf.get_variable("b", [20], use_resource=True)
    inputs = tf.placeholder(tf.float32, [3, 4], name="x")
    labels = tf.placeholder(tf.int32, [3, 2], name="y")
    tf.nn.nce_loss(weights, biases, labels, inputs, 5, 20, num_true=2)
    one = tf.placeholder(tf.int64, [3, 1], name="one")
    tf.nn.sampled_softmax_loss(weights, biases, one, inputs, 5, 20)
    tf.nn.uniform_candidate_sampler(one, 1, 4, True, 20, name="u")
    hits = tf.nn.compute_accidental_hits(one, [1, 2, 3], 1)
    tf.sparse_to_dense(hits[0], [3], hits[2], validate_indices=False)
    return None


@program
def name_scopes(tf: Any) -> Rest:
    with tf.name_scope("a") as scope:
        tf.constant(1, name="x")
        with tf.name_scope("b"):
            tf.constant(1, name="x")
    with tf.name_scope("a"):
        tf.constant(1, name="x")
    with tf.name_scope(scope):
        tf.constant(1, name="y")
    with tf.name_scope(None):
        tf.constant(1, name="z")
    with tf.name_scope(None, "fallback", [1]):
        tf.constant(1, name="x")
    tf.constant(1, name="x")
    tf.constant(1, name="X")
    tf.constant(1, name="x")
    return None


@program
def placeholders(tf: Any) -> Rest:
    tf.placeholder(tf.float32)
    tf.placeholder(tf.float32)
    tf.placeholder_with_default([1.0], [None], name="given")
    tf.cast(tf.placeholder(tf.int32, name="n"), tf.float32)
    tf.to_float(tf.constant(1))
    return lambda: tf.Print(tf.constant(1.0), ["text"])


def name_lines(tf: Any, build: Callable[[Any], Rest]) -> list[str]:
    """The nodes of the program's forward part, then its variables, as sorted lines of the golden file."""
    with tf.Graph().as_default() as graph:
        rest = build(tf)
        nodes = sorted(f"{op.name} {op.type}" for op in graph.get_operations())
        if rest is not None:
            rest()
        variables = sorted(f"variable {v.name}" for v in tf.global_variables())
    return nodes + variables
