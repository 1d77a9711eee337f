"""Calls of the functions of `tf` that draw: type, shape and range; a seed gives the same numbers twice."""

from class_calls import ClassCalls

VALUES = """
tf.set_random_seed(5)
x = tf.reshape(tf.range(60), [20, 3])
def drawn(make, low, high):
    found, again = run(tf.stack([make(), make()]))
    within = bool((found >= low).all() and (found <= high).all())
    return [found.dtype.name, list(found.shape), within, bool((found == again).all())]
"""
CALLS = {
    "get_seed": "[tf.get_seed(3), tf.get_seed(None)[0]]",
    "multinomial": "drawn(lambda: tf.multinomial([[0.0, -50.0, 0.0], [-50.0, 0.0, 0.0]], 9, 3, 'a'), 0, 2)",
    "random_crop": "drawn(lambda: tf.random_crop(x, [4, 2], 3, 'a'), 0, 59)",
    "random_gamma": "drawn(lambda: tf.random_gamma([5, 2], [0.5, 2.0], 3.0, tf.float64, 3, 'a'), 0, 50)",
    "random_normal": "drawn(lambda: tf.random_normal([5, 4], 100.0, 2.0, tf.float64, 3, 'a'), 80, 120)",
    "random_poisson": "drawn(lambda: tf.random_poisson([1.0, 9.0], [5], tf.float64, 3, 'a'), 0, 60)",
    "random_shuffle": (
        "[drawn(lambda: tf.random_shuffle(x, 3, 'a'), 0, 59), tf.reduce_sum(tf.random_shuffle(x), 0),"
        " tf.reduce_max(tf.random_shuffle(x)[:, 1] - tf.random_shuffle(x)[:, 0]) > 0]"
    ),
    "random_uniform": (
        "[drawn(lambda: tf.random_uniform([7], -4, 9, tf.int32, 3, 'a'), -4, 8),"
        " drawn(lambda: tf.random_uniform([3, 2], seed=1), 0, 1)]"
    ),
    "set_random_seed": "[tf.set_random_seed(77), tf.get_seed(3), tf.set_random_seed(5), tf.get_seed(3)]",
    "truncated_normal": "drawn(lambda: tf.truncated_normal([50], 10.0, 2.0, tf.float64, 3, 'a'), 6, 14)",
}
TABLES = [ClassCalls("tf", VALUES, CALLS)]
