"""Actor and critic twice: DDPG with soft target updates, and asynchronous workers (A3C) in threads."""
import threading

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)


class ActorNetwork(object):
    def __init__(self, sess, state_dim, action_dim, action_bound, learning_rate, tau):
        self.sess, self.s_dim, self.a_dim, self.action_bound = sess, state_dim, action_dim, action_bound
        self.inputs, self.out, self.scaled_out = self.create_actor_network()
        self.network_params = tf.trainable_variables()
        self.target_inputs, self.target_out, self.target_scaled_out = self.create_actor_network()
        self.target_network_params = tf.trainable_variables()[len(self.network_params):]
        self.update_target_network_params = [
            self.target_network_params[i].assign(tf.multiply(self.network_params[i], tau) +
                                                 tf.multiply(self.target_network_params[i], 1. - tau))
            for i in range(len(self.target_network_params))]
        self.action_gradient = tf.placeholder(tf.float32, [None, self.a_dim])
        self.unnormalized = tf.gradients(self.scaled_out, self.network_params, -self.action_gradient)
        self.actor_gradients = list(map(lambda x: tf.div(x, 8.0), self.unnormalized))
        self.optimize = tf.train.AdamOptimizer(learning_rate).apply_gradients(
            zip(self.actor_gradients, self.network_params))

    def create_actor_network(self):
        inputs = tf.placeholder(tf.float32, [None, self.s_dim])
        net = tf.layers.dense(inputs, 6, tf.nn.relu, kernel_initializer=tf.constant_initializer(
            np.linspace(-.5, .5, 18)))
        out = tf.layers.dense(net, self.a_dim, tf.nn.tanh, kernel_initializer=tf.constant_initializer(.1))
        return inputs, out, tf.multiply(out, self.action_bound)


class CriticNetwork(object):
    def __init__(self, sess, state_dim, action_dim, learning_rate, tau, num_actor_vars):
        self.sess, self.s_dim, self.a_dim = sess, state_dim, action_dim
        self.inputs, self.action, self.out = self.create_critic_network()
        self.network_params = tf.trainable_variables()[num_actor_vars:]
        self.target_inputs, self.target_action, self.target_out = self.create_critic_network()
        self.target_network_params = tf.trainable_variables()[(len(self.network_params) + num_actor_vars):]
        ema = tf.train.ExponentialMovingAverage(decay=1 - tau)
        self.soft = ema.apply(self.network_params)
        with tf.control_dependencies([self.soft]):
            self.update_target_network_params = [
                t.assign(ema.average(v)) for t, v in zip(self.target_network_params, self.network_params)]
        self.predicted_q_value = tf.placeholder(tf.float32, [None, 1])
        self.loss = tf.reduce_mean(tf.squared_difference(self.predicted_q_value, self.out))
        self.optimize = tf.train.AdamOptimizer(learning_rate).minimize(self.loss)
        self.action_grads = tf.gradients(self.out, self.action)

    def create_critic_network(self):
        inputs, action = tf.placeholder(tf.float32, [None, self.s_dim]), tf.placeholder(tf.float32, [None, self.a_dim])
        w1 = tf.Variable(np.linspace(-.4, .6, self.s_dim * 5).reshape(self.s_dim, 5).astype(np.float32))
        w2 = tf.Variable(np.linspace(.3, -.2, self.a_dim * 5).reshape(self.a_dim, 5).astype(np.float32))
        b = tf.Variable(tf.zeros([5]))
        net = tf.nn.elu(tf.matmul(inputs, w1) + tf.matmul(action, w2) + b)
        return inputs, action, tf.layers.dense(net, 1, kernel_initializer=tf.constant_initializer(.3))


with tf.Graph().as_default(), tf.Session() as sess:
    actor = ActorNetwork(sess, 3, 2, 2.0, 0.01, 0.1)
    critic = CriticNetwork(sess, 3, 2, 0.02, 0.1, len(actor.network_params) + len(actor.target_network_params))
    sess.run(tf.global_variables_initializer())
    sess.run([p.assign(q) for p, q in zip(actor.target_network_params, actor.network_params)])
    s, a = rng.randn(8, 3), rng.uniform(-2, 2, [8, 2])
    r, s2 = -np.square(a - s[:, :2]).sum(1, keepdims=True), rng.randn(8, 3)
    for step in range(12):
        target_actions = sess.run(actor.target_scaled_out, {actor.target_inputs: s2})
        target_q = sess.run(critic.target_out, {critic.target_inputs: s2, critic.target_action: target_actions})
        y = r + 0.9 * target_q
        q, loss, _ = sess.run([critic.out, critic.loss, critic.optimize],
                              {critic.inputs: s, critic.action: a, critic.predicted_q_value: y})
        a_outs = sess.run(actor.scaled_out, {actor.inputs: s})
        grads = sess.run(critic.action_grads, {critic.inputs: s, critic.action: a_outs})
        sess.run(actor.optimize, {actor.inputs: s, actor.action_gradient: grads[0]})
        sess.run([actor.update_target_network_params, critic.update_target_network_params])
        if step % 4 == 3:
            print("step %d loss %.4f max q %.4f action %.4f" % (step, loss, np.amax(q), a_outs[0, 0]))


def update_target_graph(from_scope, to_scope):
    from_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, from_scope)
    to_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, to_scope)
    return [to_var.assign(from_var) for from_var, to_var in zip(from_vars, to_vars)]


def discount(x, gamma):
    return np.array([sum(gamma ** k * v for k, v in enumerate(x[i:])) for i in range(len(x))])


class AC_Network(object):
    def __init__(self, s_size, a_size, scope, trainer):
        with tf.variable_scope(scope):
            self.inputs = tf.placeholder(tf.float32, [None, s_size])
            hidden = tf.contrib.slim.fully_connected(self.inputs, 8, activation_fn=tf.nn.elu)
            cell = tf.contrib.rnn.BasicLSTMCell(8, state_is_tuple=True)
            self.state_init = [np.zeros((1, cell.state_size.c)), np.zeros((1, cell.state_size.h))]
            c_in = tf.placeholder(tf.float32, [1, cell.state_size.c])
            h_in = tf.placeholder(tf.float32, [1, cell.state_size.h])
            self.state_in = (c_in, h_in)
            rnn_in = tf.expand_dims(hidden, [0])
            step_size = tf.shape(self.inputs)[:1]
            state_in = tf.contrib.rnn.LSTMStateTuple(c_in, h_in)
            lstm_outputs, (lstm_c, lstm_h) = tf.nn.dynamic_rnn(cell, rnn_in, initial_state=state_in,
                                                               sequence_length=step_size, time_major=False)
            self.state_out = (lstm_c[:1, :], lstm_h[:1, :])
            rnn_out = tf.reshape(lstm_outputs, [-1, 8])
            self.policy = tf.contrib.slim.fully_connected(rnn_out, a_size, activation_fn=tf.nn.softmax, biases_initializer=None)
            self.value = tf.contrib.slim.fully_connected(rnn_out, 1, activation_fn=None, biases_initializer=None)
            if scope != 'global':
                self.actions = tf.placeholder(shape=[None], dtype=tf.int32)
                self.actions_onehot = tf.one_hot(self.actions, a_size, dtype=tf.float32)
                self.target_v = tf.placeholder(shape=[None], dtype=tf.float32)
                self.advantages = tf.placeholder(shape=[None], dtype=tf.float32)
                responsible = tf.reduce_sum(self.policy * self.actions_onehot, [1])
                self.value_loss = 0.5 * tf.reduce_sum(tf.square(self.target_v - tf.reshape(self.value, [-1])))
                self.entropy = -tf.reduce_sum(self.policy * tf.log(self.policy))
                self.policy_loss = -tf.reduce_sum(tf.log(responsible) * self.advantages)
                self.loss = 0.5 * self.value_loss + self.policy_loss - self.entropy * 0.01
                local_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
                grads, self.grad_norms = tf.clip_by_global_norm(tf.gradients(self.loss, local_vars), 40.0)
                global_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'global')
                self.apply_grads = trainer.apply_gradients(zip(grads, global_vars))


def work(network, sess, coord, copy, count, seed, results):
    local = np.random.RandomState(seed)
    with sess.as_default(), sess.graph.as_default():
        for episode in range(60):
            if coord.should_stop():
                break
            sess.run(copy)
            state, rewards, states, actions, values = network.state_init, [], [], [], []
            for t in range(6):
                s = np.eye(3)[local.randint(3)]
                p, v, state = sess.run([network.policy, network.value, network.state_out],
                                       {network.inputs: [s], network.state_in[0]: state[0], network.state_in[1]: state[1]})
                a = local.choice(3, p=p[0].astype(np.float64) / p[0].astype(np.float64).sum())
                states.append(s), actions.append(a), values.append(v[0, 0]), rewards.append(float(a == np.argmax(s)))
            returns = discount(rewards, .2)
            feed = {network.target_v: returns, network.inputs: np.vstack(states), network.actions: actions,
                    network.advantages: returns - np.array(values),
                    network.state_in[0]: network.state_init[0], network.state_in[1]: network.state_init[1]}
            sess.run([network.loss, network.apply_grads], feed)
            results.append(sum(rewards))
            sess.run(count)


tf.reset_default_graph()
tf.set_random_seed(4)
with tf.device("/cpu:0"):
    global_episodes = tf.Variable(0, dtype=tf.int32, name='global_episodes', trainable=False)
    increment = global_episodes.assign_add(1, use_locking=True)
    trainer = tf.train.RMSPropOptimizer(learning_rate=0.03, use_locking=True)
    master = AC_Network(3, 3, 'global', None)
    workers = [AC_Network(3, 3, 'worker_%d' % i, trainer) for i in range(2)]
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    sess.run(tf.global_variables_initializer())
    rewards, threads = [], []
    for i, network in enumerate(workers):
        t = threading.Thread(target=work, args=(network, sess, coord, update_target_graph('global', 'worker_%d' % i),
                                                increment, i, rewards))
        t.start()
        threads.append(t)
    coord.join(threads)
    print("episodes", sess.run(global_episodes), len(rewards))
    print("rewards rise", np.mean(rewards[-40:]) > np.mean(rewards[:20]))
