"""Deep Q-learning and proximal policy optimisation with functions of the kind of baselines' tf_util."""
import collections
import functools

import numpy as np
import tensorflow as tf

# ---- tf_util


def get_session():
    return tf.get_default_session()


def make_session(num_cpu=1, make_default=False, graph=None):
    config = tf.ConfigProto(inter_op_parallelism_threads=num_cpu, intra_op_parallelism_threads=num_cpu)
    config.gpu_options.allow_growth = True
    return tf.InteractiveSession(config=config, graph=graph) if make_default else tf.Session(config=config, graph=graph)


ALREADY_INITIALIZED = set()


def initialize():
    new_variables = set(tf.global_variables()) - ALREADY_INITIALIZED
    get_session().run(tf.variables_initializer(sorted(new_variables, key=lambda v: v.name)))
    ALREADY_INITIALIZED.update(new_variables)


def normc_initializer(std=1.0, axis=0):
    def _initializer(shape, dtype=None, partition_info=None):
        out = np.random.RandomState(shape[0]).randn(*shape).astype(np.float32)
        out *= std / np.sqrt(np.square(out).sum(axis=axis, keepdims=True))
        return tf.constant(out)
    return _initializer


def function(inputs, outputs, updates=None, givens=None):
    if isinstance(outputs, list):
        return _Function(inputs, outputs, updates, givens=givens)
    if isinstance(outputs, (dict, collections.OrderedDict)):
        f = _Function(inputs, outputs.values(), updates, givens=givens)
        return lambda *args, **kwargs: type(outputs)(zip(outputs.keys(), f(*args, **kwargs)))
    f = _Function(inputs, [outputs], updates, givens=givens)
    return lambda *args, **kwargs: f(*args, **kwargs)[0]


class _Function(object):
    def __init__(self, inputs, outputs, updates, givens):
        for inpt in inputs:
            if not hasattr(inpt, 'make_feed_dict') and not (type(inpt) is tf.Tensor and len(inpt.op.inputs) == 0):
                assert False, "inputs should all be placeholders, constants, or have a make_feed_dict method"
        self.inputs = inputs
        self.input_names = {inp.name.split("/")[-1].split(":")[0]: inp for inp in inputs}
        self.update_group = tf.group(*(updates or []))
        self.outputs_update = list(outputs) + [self.update_group]
        self.givens = {} if givens is None else givens

    def __call__(self, *args, **kwargs):
        feed_dict = dict(zip(self.inputs, args))
        for name, value in kwargs.items():
            feed_dict[self.input_names[name]] = value
        for inpt in self.givens:
            feed_dict[inpt] = feed_dict.get(inpt, self.givens[inpt])
        return get_session().run(self.outputs_update, feed_dict=feed_dict)[:-1]


def var_shape(x):
    out = x.get_shape().as_list()
    assert all(isinstance(a, int) for a in out), "shape function assumes that shape is fully known"
    return out


def numel(x):
    return int(np.prod(var_shape(x)))


def flatgrad(loss, var_list, clip_norm=None):
    grads = tf.gradients(loss, var_list)
    if clip_norm is not None:
        grads = [tf.clip_by_norm(grad, clip_norm=clip_norm) for grad in grads]
    return tf.concat(axis=0, values=[tf.reshape(grad if grad is not None else tf.zeros_like(v), [numel(v)])
                                     for (v, grad) in zip(var_list, grads)])


class SetFromFlat(object):
    def __init__(self, var_list, dtype=tf.float32):
        shapes = list(map(var_shape, var_list))
        self.theta = theta = tf.placeholder(dtype, [int(np.sum([np.prod(shape) for shape in shapes]))])
        start, assigns = 0, []
        for shape, v in zip(shapes, var_list):
            size = int(np.prod(shape))
            assigns.append(tf.assign(v, tf.reshape(theta[start:start + size], shape)))
            start += size
        self.op = tf.group(*assigns)

    def __call__(self, theta):
        get_session().run(self.op, feed_dict={self.theta: theta})


class GetFlat(object):
    def __init__(self, var_list):
        self.op = tf.concat(axis=0, values=[tf.reshape(v, [numel(v)]) for v in var_list])

    def __call__(self):
        return get_session().run(self.op)


def scope_vars(scope, trainable_only=False):
    return tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES if trainable_only else tf.GraphKeys.GLOBAL_VARIABLES,
                             scope=scope if isinstance(scope, str) else scope.name)


def huber_loss(x, delta=1.0):
    return tf.where(tf.abs(x) < delta, tf.square(x) * 0.5, delta * (tf.abs(x) - 0.5 * delta))


def minimize_and_clip(optimizer, objective, var_list, clip_val=10):
    gradients = optimizer.compute_gradients(objective, var_list=var_list)
    for i, (grad, var) in enumerate(gradients):
        if grad is not None:
            gradients[i] = (tf.clip_by_norm(grad, clip_val), var)
    return optimizer.apply_gradients(gradients)


# ---- deep Q-learning


def q_model(obs, num_actions, scope, reuse=False):
    with tf.variable_scope(scope, reuse=reuse):
        out = tf.contrib.layers.fully_connected(obs, 8, activation_fn=tf.nn.relu, weights_initializer=normc_initializer())
        out = tf.contrib.layers.layer_norm(out, center=True, scale=True)
        return tf.contrib.layers.fully_connected(out, num_actions, activation_fn=None, weights_initializer=normc_initializer(.1))


def build_act(obs_ph, num_actions, scope="deepq"):
    with tf.variable_scope(scope, reuse=None):
        stochastic_ph = tf.placeholder(tf.bool, (), name="stochastic")
        update_eps_ph = tf.placeholder(tf.float32, (), name="update_eps")
        eps = tf.get_variable("eps", (), initializer=tf.constant_initializer(0))
        q_values = q_model(obs_ph, num_actions, scope="q_func")
        deterministic_actions = tf.argmax(q_values, axis=1)
        batch_size = tf.shape(obs_ph)[0]
        random_actions = tf.random_uniform(tf.stack([batch_size]), minval=0, maxval=num_actions, dtype=tf.int64)
        chose_random = tf.random_uniform(tf.stack([batch_size]), minval=0, maxval=1, dtype=tf.float32) < eps
        stochastic_actions = tf.where(chose_random, random_actions, deterministic_actions)
        output_actions = tf.cond(stochastic_ph, lambda: stochastic_actions, lambda: deterministic_actions)
        update_eps_expr = eps.assign(tf.cond(update_eps_ph >= 0, lambda: update_eps_ph, lambda: eps))
        return function(inputs=[obs_ph, stochastic_ph, update_eps_ph], outputs=output_actions,
                        givens={update_eps_ph: -1.0, stochastic_ph: True}, updates=[update_eps_expr])


sess = make_session(1, make_default=True)
rng = np.random.RandomState(0)
obs = tf.placeholder(tf.float32, [None, 4], name="observation")
act = build_act(obs, 3)
with tf.variable_scope("deepq", reuse=None):
    act_t, rew_t = tf.placeholder(tf.int32, [None], name="action"), tf.placeholder(tf.float32, [None], name="reward")
    obs_tp1 = tf.placeholder(tf.float32, [None, 4], name="obs_tp1")
    done = tf.placeholder(tf.float32, [None], name="done")
    q_t = q_model(obs, 3, "q_func", reuse=True)
    q_func_vars = scope_vars(tf.get_variable_scope().name + "/q_func")
    q_tp1 = q_model(obs_tp1, 3, "target_q_func")
    target_vars = scope_vars(tf.get_variable_scope().name + "/target_q_func")
    q_selected = tf.reduce_sum(q_t * tf.one_hot(act_t, 3), 1)
    best_online = tf.argmax(q_model(obs_tp1, 3, "q_func", reuse=True), 1)
    q_tp1_best = (1.0 - done) * tf.reduce_sum(q_tp1 * tf.one_hot(best_online, 3), 1)
    td_error = q_selected - tf.stop_gradient(rew_t + 0.9 * q_tp1_best)
    weighted_error = tf.reduce_mean(huber_loss(td_error))
    optimize_expr = minimize_and_clip(tf.train.AdamOptimizer(1e-2), weighted_error, q_func_vars, clip_val=1.)
    update_target = function([], [], updates=[v_t.assign(v) for v, v_t in zip(
        sorted(q_func_vars, key=lambda v: v.name), sorted(target_vars, key=lambda v: v.name))])
    train = function([obs, act_t, rew_t, obs_tp1, done], [td_error, weighted_error], updates=[optimize_expr])
initialize()
update_target()
states = rng.randn(16, 4).astype(np.float32)
actions = rng.randint(0, 3, 16)
rewards = (actions == np.argmax(states[:, :3], 1)).astype(np.float32)
for t in range(30):
    td, loss = train(states, actions, rewards, np.roll(states, 1, 0), np.ones(16) * (t % 2))
    if t % 10 == 9:
        update_target()
        print("t %d td %.4f loss %.4f" % (t, np.abs(td).mean(), loss))
print(act(states, stochastic=False).tolist())
act(states, update_eps=1.0)
print("explores", len(set(np.concatenate([act(states) for _ in range(5)]))) == 3, [v.name for v in q_func_vars][:2])

# ---- proximal policy optimisation


class DiagGaussianPd(object):
    def __init__(self, flat):
        self.mean, self.logstd = tf.split(axis=len(flat.shape) - 1, num_or_size_splits=2, value=flat)
        self.std = tf.exp(self.logstd)

    def neglogp(self, x):
        return (0.5 * tf.reduce_sum(tf.square((x - self.mean) / self.std), axis=-1)
                + 0.5 * np.log(2.0 * np.pi) * tf.to_float(tf.shape(x)[-1]) + tf.reduce_sum(self.logstd, axis=-1))

    def kl(self, other):
        return tf.reduce_sum(other.logstd - self.logstd + (tf.square(self.std) + tf.square(self.mean - other.mean))
                             / (2.0 * tf.square(other.std)) - 0.5, axis=-1)

    def entropy(self):
        return tf.reduce_sum(self.logstd + .5 * np.log(2.0 * np.pi * np.e), axis=-1)


def policy(scope, x):
    with tf.variable_scope(scope):
        h = tf.tanh(tf.layers.dense(x, 6, name="fc1", kernel_initializer=normc_initializer(1.0)))
        vf = tf.layers.dense(h, 1, name='vffinal', kernel_initializer=normc_initializer(1.0))[:, 0]
        mean = tf.layers.dense(h, 2, name='polfinal', kernel_initializer=normc_initializer(0.01))
        logstd = tf.get_variable(name="logstd", shape=[1, 2], initializer=tf.zeros_initializer())
        return DiagGaussianPd(tf.concat([mean, mean * 0.0 + logstd], axis=1)), vf, scope_vars(scope, True)


ob, ac = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 2])
atarg, ret = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
lrmult = tf.placeholder(name='lrmult', dtype=tf.float32, shape=[])
(pi, vpred, pi_vars), (old, _, old_vars) = policy("pi", ob), policy("old", ob)
ratio = tf.exp(old.neglogp(ac) - pi.neglogp(ac))
clip_param = 0.2 * lrmult
pol_surr = -tf.reduce_mean(tf.minimum(ratio * atarg, tf.clip_by_value(ratio, 1.0 - clip_param, 1.0 + clip_param) * atarg))
vf_loss = tf.reduce_mean(tf.square(vpred - ret))
total = pol_surr + (-0.01) * tf.reduce_mean(pi.entropy()) + vf_loss
lossandgrad = function([ob, ac, atarg, ret, lrmult], [total, tf.reduce_mean(pi.kl(old)), flatgrad(total, pi_vars, .5)])
assign_old = function([], [], updates=[tf.assign(o, n) for o, n in zip(old_vars, pi_vars)])
initialize()
get_flat, set_flat = GetFlat(pi_vars), SetFromFlat(pi_vars)
taken = rng.randn(16, 2)
advantages = functools.reduce(lambda a, b: a + b, [states[:, i] * taken[:, i] for i in range(2)])
for iteration in range(2):
    assign_old()
    for epoch in range(4):
        value, kl, grad = lossandgrad(states, taken, advantages, rewards, 1.0 - iteration / 4.)
        set_flat(get_flat() - 0.1 * grad)
    print("iteration %d loss %.4f kl %.5f size %d" % (iteration, value, kl, grad.size))
sess.close()
