"""Programs of k-means and of mixtures that TensorFlow 1.15.5 and flowstone run alike; each gives arrays."""

import numpy as np

POINTS = np.random.RandomState(7).rand(30, 3).astype(np.float32)
CENTERS = POINTS[[3, 11, 19]] + np.float32(0.05)
CONFIGURATIONS = {
    "full": {},
    "full cosine": {"distance_metric": "cosine"},
}


def k_means(tf, **arguments):
    """Five steps from given centres, of all examples."""
    results = {}
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        arguments.setdefault("initial_clusters", CENTERS)
        made = tf.contrib.factorization.KMeans(x, 3, **arguments).training_graph()
        distances, index, scores, initialized, init_op, train_op = made
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(init_op, {x: POINTS})
            assert session.run(initialized)
            for _ in range(5):
                batch = {x: POINTS}
                before = session.run([distances[0], index[0], scores[0]], batch)
                session.run(train_op, batch)
            names = [v.op.name for v in tf.global_variables()]
            results.update(zip(names, session.run(tf.global_variables())))
            results.update(zip(["distances", "index", "scores"], before))
    return results


def two_inputs(tf):
    """A step of two inputs, whose centres k-means++ chooses."""
    with tf.Graph().as_default():
        inputs = [tf.constant(POINTS[:12]), tf.constant(POINTS[12:])]
        made = tf.contrib.factorization.KMeans(
            inputs, 4, initial_clusters="kmeans_plus_plus", random_seed=5
        ).training_graph()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(made[4])
            first = session.run(tf.global_variables()[0])
            session.run(made[5])
            second, scores = session.run([tf.global_variables()[0], made[2]])
    return {"first": first, "second": second, "scores": np.concatenate(scores)}


def mixture(tf, covariance_type):
    """Four steps of a mixture of three Gaussians from given means."""
    with tf.Graph().as_default():
        made = tf.contrib.factorization.gmm(tf.constant(POINTS), CENTERS, 3, 1, covariance_type)
        loss, scores, assignments, training_op, init_op, initialized = made
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(init_op)
            before = session.run([loss, scores, assignments[0][0], initialized])
            for _ in range(4):
                session.run(training_op)
            results = dict(zip(["loss", "scores", "assignments", "initialized"], before))
            variables = tf.global_variables()
            results.update(zip([v.op.name for v in variables], session.run(variables)))
            results["last loss"], results["last scores"] = session.run([loss, scores])
    return results


def programs():
    """The programs by name, each a function of TensorFlow's module."""
    every = {f"k-means {name}": (k_means, given) for name, given in CONFIGURATIONS.items()}
    every["k-means of two inputs"] = (two_inputs, {})
    for kind in ("full", "diag"):
        every[f"mixture {kind}"] = (mixture, {"covariance_type": kind})
    return every
