"""Optimisers by the names of `families`, and variables with their first values."""

from tf1 import tf  # isort: skip


def optimiser(name, rate):
    """Of tf.train with its defaults, and a momentum of 0.9."""
    if name == "momentum":
        return tf.train.MomentumOptimizer(rate, 0.9)
    names = {
        "sgd": "GradientDescent",
        "adam": "Adam",
        "adagrad": "Adagrad",
        "rmsprop": "RMSProp",
        "ftrl": "Ftrl",
    }
    return getattr(tf.train, names[name] + "Optimizer")(rate)


def variables(values):
    """By name."""
    return {name: tf.Variable(value, name=name) for name, value in values.items()}
