"""Clustering and mixtures in raw TensorFlow: k-means with a loop, a Gaussian mixture by EM, PCA, a Bayesian network."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
points_n, clusters_n, iteration_n = 60, 3, 10
centers = np.array([[0., 0.], [4., 4.], [-4., 4.]])
data = np.concatenate([rng.normal(c, .5, [points_n // 3, 2]) for c in centers]).astype(np.float32)

# ---- k-means, with counts by bucket
points = tf.Variable(data)
cluster_assignments = tf.Variable(tf.zeros([points_n], dtype=tf.int64))
centroids = tf.Variable(tf.slice(points.initialized_value(), [18, 0], [clusters_n, 2]))
rep_centroids = tf.reshape(tf.tile(centroids, [points_n, 1]), [points_n, clusters_n, 2])
rep_points = tf.reshape(tf.tile(points, [1, clusters_n]), [points_n, clusters_n, 2])
sum_squares = tf.reduce_sum(tf.square(rep_points - rep_centroids), reduction_indices=2)
best_centroids = tf.argmin(sum_squares, 1)
did_assignments_change = tf.reduce_any(tf.not_equal(best_centroids, cluster_assignments))


def bucket_mean(data, bucket_ids, num_buckets):
    total = tf.unsorted_segment_sum(data, bucket_ids, num_buckets)
    count = tf.unsorted_segment_sum(tf.ones_like(data), bucket_ids, num_buckets)
    return total / count


means = bucket_mean(points, best_centroids, clusters_n)
with tf.control_dependencies([did_assignments_change]):
    do_updates = tf.group(centroids.assign(means), cluster_assignments.assign(best_centroids))
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    changed, iters = True, 0
    while changed and iters < 100:
        iters += 1
        [changed, _] = sess.run([did_assignments_change, do_updates])
    [found, assignments] = sess.run([centroids, cluster_assignments])
    print("k-means", iters, found.round(3).tolist(), np.bincount(assignments).tolist())

# ---- the same in one while_loop
tf.reset_default_graph()
x = tf.constant(data)


def step(i, c, previous):
    expanded = tf.subtract(tf.expand_dims(x, 0), tf.expand_dims(c, 1))
    nearest = tf.argmin(tf.reduce_sum(tf.square(expanded), 2), 0)
    parts = tf.dynamic_partition(x, tf.to_int32(nearest), clusters_n)
    new = tf.concat([tf.expand_dims(tf.reduce_mean(p, 0), 0) for p in parts], 0)
    return i + 1, new, tf.reduce_max(tf.abs(new - c))


count, result, moved = tf.while_loop(lambda i, c, d: tf.logical_and(i < 50, d > 1e-6), step,
                                     [tf.constant(0), tf.constant(data[18:21]), tf.constant(1.)],
                                     shape_invariants=[tf.TensorShape([]), tf.TensorShape([clusters_n, 2]), tf.TensorShape([])])

# ---- a mixture by expectation maximisation
mu = tf.Variable(data[[0, 25, 45]])
var, pi = tf.Variable(tf.ones([clusters_n, 2])), tf.Variable(tf.fill([clusters_n], 1. / clusters_n))
log_prob = -0.5 * tf.reduce_sum(tf.square(x[:, None] - mu) / var + tf.log(2 * np.pi * var), 2) + tf.log(pi)
log_likelihood = tf.reduce_sum(tf.reduce_logsumexp(log_prob, 1))
gamma = tf.exp(log_prob - tf.reduce_logsumexp(log_prob, 1, keepdims=True))
total = tf.reduce_sum(gamma, 0)
new_mu = tf.matmul(gamma, x, transpose_a=True) / total[:, None]
new_var = tf.einsum("nk,nkd->kd", gamma, tf.square(x[:, None] - new_mu)) / total[:, None] + 1e-4
update = tf.group(mu.assign(new_mu), var.assign(new_var), pi.assign(total / points_n))

# ---- principal components, a Gaussian process
centred = x - tf.reduce_mean(x, 0)
s, u, v = tf.svd(centred, full_matrices=False)
covariance = tf.matmul(centred, centred, transpose_a=True) / (points_n - 1)
eigenvalues, eigenvectors = tf.self_adjoint_eig(covariance)
kernel = tf.exp(-tf.reduce_sum(tf.square(x[:8, None] - x[None, :8]), 2)) + 0.1 * tf.eye(8)
chol = tf.cholesky(kernel)
alpha = tf.cholesky_solve(chol, x[:8, :1])
evidence = -0.5 * tf.reduce_sum(x[:8, :1] * alpha) - tf.reduce_sum(tf.log(tf.diag_part(chol)))
solved = tf.matrix_solve_ls(tf.concat([x, tf.ones([points_n, 1])], 1), tf.reduce_sum(x, 1, keepdims=True) + 2., 1e-6)
with tf.Session() as sess:
    print("loop", sess.run(result).round(3).tolist(), sess.run(count) > 1)
    sess.run(tf.global_variables_initializer())
    for i in range(6):
        value, _ = sess.run([log_likelihood, update])
        if i % 2 == 0:
            print("mixture %d likelihood %.3f" % (i, value))
    print(sess.run(mu).round(3).tolist(), sess.run(pi).round(3).tolist())
    print("pca", sess.run(s).round(3).tolist(), sess.run(eigenvalues).round(3).tolist(), sess.run(evidence).round(3))
    print("fit", sess.run(solved).round(3).ravel().tolist(), "%.4f" % sess.run(tf.log(tf.matrix_determinant(covariance))))
    print(np.abs(sess.run(tf.matmul(u * s, v, adjoint_b=True) - centred)).max() < 1e-4)

# ---- a Bayesian network with tf.distributions
tf.reset_default_graph()
tfd = tf.distributions
inputs = np.linspace(-1, 1, 20).reshape(-1, 1).astype(np.float32)
targets = (inputs * 2 + .3).astype(np.float32)
noise = tf.placeholder(tf.float32, [2])
loc, rho = tf.get_variable("loc", [2], initializer=tf.zeros_initializer()), tf.get_variable(
    "rho", [2], initializer=tf.constant_initializer(-2.))
posterior, prior = tfd.Normal(loc, tf.nn.softplus(rho)), tfd.Normal(tf.zeros([2]), tf.ones([2]))
weights = posterior.loc + posterior.scale * noise
likelihood = tfd.Normal(inputs * weights[0] + weights[1], .2)
kl = tf.reduce_sum(tfd.kl_divergence(posterior, prior))
elbo = tf.reduce_sum(likelihood.log_prob(targets)) - kl
train = tf.train.AdamOptimizer(.1).minimize(-elbo)
mixture = tf.contrib.distributions.MixtureSameFamily if hasattr(tf.contrib.distributions, "MixtureSameFamily") else None
mvn = tf.contrib.distributions.MultivariateNormalDiag([0., 1.], [1., 2.])
beta, gamma_d = tfd.Beta(2., 3.), tfd.Gamma(2., 1.)
relaxed = tf.contrib.distributions.RelaxedOneHotCategorical(.5, logits=[1., 2., .5])
flow = tf.contrib.distributions.TransformedDistribution(
    tfd.Normal(0., 1.), tf.contrib.distributions.bijectors.Exp(), name="LogNormalTransformed")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    draws = np.random.RandomState(9)
    for i in range(40):
        value, _ = sess.run([elbo, train], {noise: draws.normal(size=2)})
        if i % 13 == 0:
            print("elbo %d %.3f" % (i, value))
    print("kl %.4f" % sess.run(kl), sess.run(loc).round(3).tolist(), sess.run(posterior.stddev()).round(3).tolist())
    print("%.4f %.4f %.4f %.4f" % tuple(sess.run([mvn.log_prob([1., 1.]), beta.mean(), gamma_d.entropy(), flow.log_prob(2.)])))
    print(sess.run(relaxed.sample(3, seed=1)).shape, np.allclose(sess.run(tf.reduce_sum(relaxed.sample(seed=2))), 1, atol=1e-5),
          sess.run(tfd.Bernoulli(logits=[9., -9.]).mode()).tolist(), prior.name, tfd.Categorical([.1, .9]).event_shape)
