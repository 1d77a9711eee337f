"""Variational autoencoder as a class with an interactive session, in the style of 2016."""
import numpy as np
import tensorflow as tf

np.random.seed(0)
tf.set_random_seed(0)


def xavier_init(fan_in, fan_out, constant=1):
    low = -constant * np.sqrt(6.0 / (fan_in + fan_out))
    high = constant * np.sqrt(6.0 / (fan_in + fan_out))
    return tf.constant(np.random.uniform(low, high, (fan_in, fan_out)), dtype=tf.float32)


class VariationalAutoencoder(object):
    def __init__(self, network_architecture, transfer_fct=tf.nn.softplus, learning_rate=0.01, batch_size=20):
        self.network_architecture = network_architecture
        self.transfer_fct = transfer_fct
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.x = tf.placeholder(tf.float32, [None, network_architecture["n_input"]])
        self._create_network()
        self._create_loss_optimizer()
        init = tf.global_variables_initializer()
        self.sess = tf.InteractiveSession()
        self.sess.run(init)

    def _create_network(self):
        network_weights = self._initialize_weights(**self.network_architecture)
        self.z_mean, self.z_log_sigma_sq = self._network(
            self.x, network_weights["weights_recog"], network_weights["biases_recog"])
        self.eps = tf.placeholder_with_default(
            tf.random_normal(tf.shape(self.z_mean), 0, 1, dtype=tf.float32), self.z_mean.get_shape())
        self.z = tf.add(self.z_mean, tf.multiply(tf.sqrt(tf.exp(self.z_log_sigma_sq)), self.eps))
        mean, _ = self._network(self.z, network_weights["weights_gener"], network_weights["biases_gener"])
        self.x_reconstr_mean = tf.nn.sigmoid(mean)

    def _initialize_weights(self, n_hidden_recog, n_hidden_gener, n_input, n_z):
        all_weights = dict()
        for name, n_in, n_hidden, n_out in [("recog", n_input, n_hidden_recog, n_z),
                                            ("gener", n_z, n_hidden_gener, n_input)]:
            all_weights['weights_' + name] = {
                'h1': tf.Variable(xavier_init(n_in, n_hidden)),
                'out_mean': tf.Variable(xavier_init(n_hidden, n_out)),
                'out_log_sigma': tf.Variable(xavier_init(n_hidden, n_out))}
            all_weights['biases_' + name] = {
                'b1': tf.Variable(tf.zeros([n_hidden], dtype=tf.float32)),
                'out_mean': tf.Variable(tf.zeros([n_out], dtype=tf.float32)),
                'out_log_sigma': tf.Variable(tf.zeros([n_out], dtype=tf.float32))}
        return all_weights

    def _network(self, x, weights, biases):
        layer_1 = self.transfer_fct(tf.add(tf.matmul(x, weights['h1']), biases['b1']))
        return (tf.add(tf.matmul(layer_1, weights['out_mean']), biases['out_mean']),
                tf.add(tf.matmul(layer_1, weights['out_log_sigma']), biases['out_log_sigma']))

    def _create_loss_optimizer(self):
        reconstr_loss = -tf.reduce_sum(self.x * tf.log(1e-10 + self.x_reconstr_mean) +
                                       (1 - self.x) * tf.log(1e-10 + 1 - self.x_reconstr_mean), 1)
        latent_loss = -0.5 * tf.reduce_sum(
            1 + self.z_log_sigma_sq - tf.square(self.z_mean) - tf.exp(self.z_log_sigma_sq), reduction_indices=1)
        self.cost = tf.reduce_mean(reconstr_loss + latent_loss)
        self.optimizer = tf.train.AdamOptimizer(learning_rate=self.learning_rate).minimize(self.cost)

    def partial_fit(self, X, eps=None):
        feed = {self.x: X}
        if eps is not None:
            feed[self.eps] = eps
        opt, cost = self.sess.run((self.optimizer, self.cost), feed_dict=feed)
        assert opt is None
        return cost

    def transform(self, X):
        return self.sess.run(self.z_mean, feed_dict={self.x: X})

    def generate(self, z_mu=None):
        if z_mu is None:
            z_mu = np.random.normal(size=[1, self.network_architecture["n_z"]])
        return self.sess.run(self.x_reconstr_mean, feed_dict={self.z: z_mu})


prototypes = (np.random.rand(4, 20) > 0.5).astype(np.float32)
data = np.abs(np.repeat(prototypes, 10, 0) - (np.random.rand(40, 20) < 0.05))
vae = VariationalAutoencoder(dict(n_hidden_recog=12, n_hidden_gener=10, n_input=20, n_z=2))
noise = np.random.RandomState(5)
for epoch in range(12):
    avg_cost = 0.
    for i in range(2):
        cost = vae.partial_fit(data[i::2], noise.normal(size=(20, 2)))
        avg_cost += cost / len(data) * vae.batch_size
    if epoch % 3 == 0:
        print("Epoch:", '%04d' % (epoch + 1), "cost=", "{:.5f}".format(avg_cost))
print("latent", " ".join("%.4f" % v for v in vae.transform(prototypes).ravel()))
print("generated", " ".join("%.4f" % v for v in vae.generate(np.ones([1, 2]))[0, :6]))
before = np.mean([vae.partial_fit(data) for _ in range(5)])
for _ in range(60):
    after = vae.partial_fit(data)
print("still falls with its own noise:", bool(after < before))
vae.sess.close()
