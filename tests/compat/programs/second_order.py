"""Gradients of gradients: WGAN with a penalty, a learner of learners (MAML), natural gradients by conjugate gradients."""
import functools

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)


def lib_linear(name, input_dim, output_dim, inputs):
    with tf.name_scope(name):
        values = np.random.RandomState(len(name)).uniform(-.4, .4, (input_dim, output_dim)).astype('float32')
        w, b = lib_param(name + '.W', values), lib_param(name + '.b', np.zeros(output_dim, 'float32'))
        return tf.nn.bias_add(tf.matmul(inputs, w), b)


_params = {}


def lib_param(name, *args, **kwargs):
    if name not in _params:
        _params[name] = tf.Variable(*args, name=name, **kwargs)
    return _params[name]


def params_with_name(name):
    return [p for n, p in sorted(_params.items()) if name in n]


def Generator(noise):
    output = tf.nn.relu(lib_linear('Generator.1', 3, 8, noise))
    return lib_linear('Generator.2', 8, 2, output)


def Discriminator(inputs):
    output = inputs
    for i, (a, b) in enumerate([(2, 8), (8, 8)]):
        output = tf.nn.leaky_relu(lib_linear('Discriminator.%d' % i, a, b, output))
    return tf.reshape(lib_linear('Discriminator.out', 8, 1, output), [-1])


with tf.Graph().as_default(), tf.Session() as session:
    real, noise, alpha = tf.placeholder(tf.float32, [8, 2]), tf.placeholder(tf.float32, [8, 3]), tf.placeholder(tf.float32, [8, 1])
    fake = Generator(noise)
    disc_cost = tf.reduce_mean(Discriminator(fake)) - tf.reduce_mean(Discriminator(real))
    gen_cost = -tf.reduce_mean(Discriminator(fake))
    interpolates = alpha * real + ((1 - alpha) * fake)
    gradients = tf.gradients(Discriminator(interpolates), [interpolates])[0]
    slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), reduction_indices=[1]))
    gradient_penalty = tf.reduce_mean((slopes - 1) ** 2)
    disc_cost += 10. * gradient_penalty
    disc_train = tf.train.AdamOptimizer(1e-2, beta1=0.5, beta2=0.9).minimize(disc_cost, var_list=params_with_name('Discriminator'))
    gen_train = tf.train.AdamOptimizer(1e-2, beta1=0.5, beta2=0.9).minimize(gen_cost, var_list=params_with_name('Generator'))
    session.run(tf.global_variables_initializer())
    for iteration in range(9):
        for _ in range(2):
            feed = {real: rng.normal([1, -1], .3, [8, 2]), noise: rng.normal(size=[8, 3]), alpha: rng.rand(8, 1)}
            cost, penalty, _ = session.run([disc_cost, gradient_penalty, disc_train], feed)
        session.run(gen_train, feed)
        if iteration % 4 == 0:
            print("wgan %d cost %.4f penalty %.4f" % (iteration, cost, penalty))

# ---- MAML


def construct_weights():
    init = lambda *shape: tf.Variable(np.random.RandomState(shape[-1]).normal(0, .4, shape).astype(np.float32))
    return {"w1": init(1, 10), "b1": tf.Variable(tf.zeros([10])), "w2": init(10, 1), "b2": tf.Variable(tf.zeros([1]))}


def forward(inp, weights):
    return tf.matmul(tf.nn.relu(tf.matmul(inp, weights["w1"]) + weights["b1"]), weights["w2"]) + weights["b2"]


def mse(pred, label):
    return tf.reduce_mean(tf.square(tf.reshape(pred, [-1]) - tf.reshape(label, [-1])))


with tf.Graph().as_default(), tf.Session() as session:
    inputa, labela, inputb, labelb = [tf.placeholder(tf.float32, [None, 5, 1]) for _ in range(4)]
    with tf.variable_scope('model', reuse=None):
        weights = construct_weights()

    def task_metalearn(inp, stop=False, num_inner_updates=2):
        inputa, inputb, labela, labelb = inp
        losses_b = []
        fast_weights = weights
        for _ in range(num_inner_updates):
            loss = mse(forward(inputa, fast_weights), labela)
            grads = tf.gradients(loss, list(fast_weights.values()))
            if stop:
                grads = [tf.stop_gradient(grad) for grad in grads]
            gradients = dict(zip(fast_weights.keys(), grads))
            fast_weights = {key: fast_weights[key] - 0.05 * gradients[key] for key in fast_weights}
            losses_b.append(mse(forward(inputb, fast_weights), labelb))
        return losses_b
    result = tf.map_fn(task_metalearn, elems=(inputa, inputb, labela, labelb), dtype=[tf.float32] * 2, parallel_iterations=4)
    first_order = tf.map_fn(functools.partial(task_metalearn, stop=True), elems=(inputa, inputb, labela, labelb), dtype=[tf.float32] * 2)
    total_losses = [tf.reduce_sum(r) / tf.to_float(4) for r in result]
    optimizer = tf.train.AdamOptimizer(0.02)
    gvs = optimizer.compute_gradients(total_losses[-1])
    gvs = [(tf.clip_by_value(grad, -10, 10), var) for grad, var in gvs]
    metatrain_op = optimizer.apply_gradients(gvs)
    session.run(tf.global_variables_initializer())
    amplitude, phase = rng.uniform(.5, 2, [4, 1, 1]), rng.uniform(0, 3, [4, 1, 1])
    xs = rng.uniform(-3, 3, [4, 10, 1])
    ys = amplitude * np.sin(xs - phase)
    feed = {inputa: xs[:, :5], labela: ys[:, :5], inputb: xs[:, 5:], labelb: ys[:, 5:]}
    for i in range(9):
        losses, _ = session.run([total_losses, metatrain_op], feed)
        if i % 4 == 0:
            print("maml %d loss %.4f then %.4f" % (i, losses[0], losses[1]))
    print("same values", np.allclose(*session.run([result[1], first_order[1]], feed), rtol=1e-4))

# ---- natural gradient


def conjugate_gradient(f_Ax, b, cg_iters=10, residual_tol=1e-10):
    p, r, x = b.copy(), b.copy(), np.zeros_like(b)
    rdotr = r.dot(r)
    for _ in range(cg_iters):
        z = f_Ax(p)
        v = rdotr / p.dot(z)
        x += v * p
        r -= v * z
        newrdotr = r.dot(r)
        p = r + newrdotr / rdotr * p
        rdotr = newrdotr
        if rdotr < residual_tol:
            break
    return x


with tf.Graph().as_default(), tf.Session() as session:
    ob, adv, act = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [None])
    w = tf.Variable(rng.normal(0, .3, [3, 4]).astype(np.float32))
    logits = tf.nn.log_softmax(tf.matmul(ob, w))
    old = tf.stop_gradient(logits)
    kl = tf.reduce_mean(tf.reduce_sum(tf.exp(old) * (old - logits), 1))
    chosen = tf.reduce_sum(logits * tf.one_hot(act, 4), 1)
    surrogate = tf.reduce_mean(tf.exp(chosen - tf.stop_gradient(chosen)) * adv)
    tangent = tf.placeholder(tf.float32, [12])
    grad_kl = tf.gradients(kl, w)[0]
    gvp = tf.reduce_sum(tf.reshape(grad_kl, [-1]) * tangent)
    fvp = tf.reshape(tf.gradients(gvp, w)[0], [-1])
    session.run(tf.global_variables_initializer())
    feed = {ob: rng.normal(size=[10, 3]), adv: rng.normal(size=[10]), act: rng.randint(0, 4, 10)}
    gain, g = session.run([surrogate, tf.reshape(tf.gradients(surrogate, w)[0], [-1])], feed)
    step = conjugate_gradient(lambda p: session.run(fvp, dict(list(feed.items()) + [(tangent, p)])) + .1 * p, g)
    print("trpo", "%.4f" % gain, " ".join("%.3f" % v for v in step[:4]), "%.4f" % g.dot(step))
