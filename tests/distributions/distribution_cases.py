# ruff: noqa: E501  (a case a line)
"""Distributions with parameters and values, and what is asked of each, by Flowstone and by TensorFlow alike.

`answers(tf, case)` builds the graphs with the module given, so that the script that makes the stored answers
and the test that compares with them ask the same. It runs on Python 3.7, which TensorFlow 1.15 needs.
"""

import numpy as np

INF, NAN = float("inf"), float("nan")

# (name, class, arguments, dtype, values)
SCALAR = [1.5, -0.3, 0.0, 0.2, 1.0, 7.0]
CASES = [
    ("normal", "Normal", {"loc": 0.5, "scale": 2.0}, "float32", [*SCALAR, 30.0, -60.0, INF, -INF, NAN]),
    ("normal-batch", "Normal", {"loc": [1.0, -2.0], "scale": [0.5, 3.0]}, "float64", [[0.1, 0.2], [-45.0, -90.0]]),
    ("normal-broadcast", "Normal", {"loc": [[1.0], [2.0]], "scale": [0.5, 3.0, 1.0]}, "float32", 0.7),
    ("normal-half", "Normal", {"loc": 0.5, "scale": 2.0}, "float16", [0.5, 1.5]),
    ("laplace", "Laplace", {"loc": 0.5, "scale": 2.0}, "float32", [*SCALAR, 300.0, -60.0, INF, -INF, NAN]),
    ("laplace-broadcast", "Laplace", {"loc": [[1.0], [2.0]], "scale": [0.5, 3.0]}, "float64", [0.7, 1.0]),
    ("uniform", "Uniform", {"low": 0.0, "high": 1.5}, "float32", [*SCALAR, INF, -INF, NAN]),
    ("uniform-batch", "Uniform", {"low": [0.0, 1.0], "high": [[2.0], [3.0]]}, "float64", [0.5, 2.5]),
    ("gamma", "Gamma", {"concentration": 2.5, "rate": 1.5}, "float32", [1.5, 0.2, 1.0, 7.0, 0.0]),
    ("gamma-batch", "Gamma", {"concentration": [0.5, 1.0, 3.0], "rate": [1.0, 2.0, 0.5]}, "float64", [0.1, 2.0, 9.0]),
    ("exponential", "Exponential", {"rate": 1.5}, "float32", [1.5, 0.2, 0.0, 90.0, INF, NAN]),
    ("exponential-batch", "Exponential", {"rate": [0.5, 4.0]}, "float64", [[1.0, 2.0], [0.1, 0.2]]),
    ("beta", "Beta", {"concentration1": 2.5, "concentration0": 1.5}, "float32", [0.1, 0.5, 0.9, 0.0, 1.0]),
    ("beta-batch", "Beta", {"concentration1": [0.5, 1.0, 3.0], "concentration0": [2.0, 2.0, 2.0]}, "float64", [0.1, 0.2, 0.9]),
    ("beta-broadcast", "Beta", {"concentration1": [[0.5], [3.0]], "concentration0": [1.0, 2.0]}, "float32", 0.3),
    ("student_t", "StudentT", {"df": 3.0, "loc": 0.5, "scale": 2.0}, "float32", [*SCALAR, 300.0]),
    ("student_t-batch", "StudentT", {"df": [0.5, 1.5, 2.5, 1.0], "loc": 0.5, "scale": 2.0}, "float64", [0.1, -3.0, 0.5, 4.0]),
    ("student_t-negative", "StudentT", {"df": [3.0, 4.0], "loc": 0.0, "scale": [-2.0, 1.0]}, "float32", [1.0, 2.0]),
    ("bernoulli-probs", "Bernoulli", {"probs": [0.3, 0.5, 0.9]}, "float32", [1, 0, 1]),
    ("bernoulli-logits", "Bernoulli", {"logits": [[-2.0], [0.5]]}, "float64", [0, 1]),
    ("bernoulli-certain", "Bernoulli", {"probs": [0.0, 1.0]}, "float32", [0, 1]),
    ("categorical-probs", "Categorical", {"probs": [[0.3, 0.7], [0.4, 0.6]]}, "float32", [1, 0]),
    ("categorical-logits", "Categorical", {"logits": [0.3, -0.7, 2.0]}, "float64", [1, 0, 2, 2]),
    ("categorical-broadcast", "Categorical", {"logits": [[[1.0, 2.0, 0.1]], [[3.0, 0.0, 0.0]]]}, "float32", [2, 0]),
    ("dirichlet", "Dirichlet", {"concentration": [1.5, 2.0, 3.0]}, "float32", [[0.2, 0.3, 0.5], [0.0, 0.1, 0.9]]),
    ("dirichlet-batch", "Dirichlet", {"concentration": [[1.5, 2.0], [0.5, 3.0]]}, "float64", [0.2, 0.8]),
    ("multinomial", "Multinomial", {"total_count": 4.0, "probs": [0.2, 0.3, 0.5]}, "float32", [[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]]),
    ("multinomial-batch", "Multinomial", {"total_count": [3.0, 4.0], "logits": [[0.2, 0.3], [1.0, -1.0]]}, "float64", [[1.0, 2.0], [4.0, 0.0]]),
    ("dirichlet_multinomial", "DirichletMultinomial", {"total_count": 4.0, "concentration": [1.0, 2.0, 0.5]}, "float32", [[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]]),
    ("dirichlet_multinomial-batch", "DirichletMultinomial", {"total_count": 5.0, "concentration": [[1.0, 2.0], [3.0, 4.0]]}, "float64", [2.0, 3.0]),
]  # fmt: skip

OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function")
STATISTICS = ("entropy", "mean", "mode", "variance", "stddev", "covariance")
SHAPES = ("batch_shape_tensor", "event_shape_tensor", "is_scalar_batch", "is_scalar_event")
FULLY = ("Normal", "Laplace", "Uniform", "Gamma", "Exponential", "Beta", "Dirichlet", "StudentT")

# (name, class, arguments of a, arguments of b)
DIVERGENCES = [
    ("Normal", {"loc": [0.0, 1.0], "scale": 2.0}, {"loc": [[1.0], [3.0]], "scale": 0.5}),
    ("Bernoulli", {"probs": [0.2, 0.9]}, {"logits": [0.5, -1.0]}),
    ("Beta", {"concentration1": [1.0, 0.5], "concentration0": 2.0}, {"concentration1": 3.0, "concentration0": [0.7, 5.0]}),
    ("Categorical", {"logits": [[1.0, 2.0, 3.0]]}, {"probs": [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]]}),
    ("Dirichlet", {"concentration": [1.0, 2.0, 0.5]}, {"concentration": [[3.0, 1.0, 1.0]]}),
    ("Gamma", {"concentration": [1.0, 2.5], "rate": 3.0}, {"concentration": 0.5, "rate": [1.0, 4.0]}),
    ("Exponential", {"rate": [1.0, 2.5]}, {"rate": 3.0}),
]  # fmt: skip

# Calls that fail: expressions of d (tf.distributions) and tf.
FAULTS = [
    "d.Categorical()", "d.Categorical([1., 2.], [1., 2.])", "d.Categorical([1, 2])", "d.Categorical(1.)",
    "d.Bernoulli()", "d.Bernoulli(.2, .3)", "d.Bernoulli(1)", "d.Bernoulli(probs=1)",
    "d.Bernoulli(probs=1.2, validate_args=True)", "d.Bernoulli(probs=-.2, validate_args=True)",
    "d.Bernoulli(.2, validate_args=True).prob(2)", "d.Bernoulli(.2).cdf(1)", "d.Bernoulli(.2).quantile(.3)",
    "d.Categorical(probs=[.2, .3], validate_args=True).probs", "d.Categorical([1., 2.]).mean()",
    "d.Categorical([1., 2.], validate_args=True).prob(-1)",
    "d.Normal(0, 1)", "d.Normal(0., tf.constant(1., tf.float64))", "d.Normal(0., -1., validate_args=True)",
    "d.Normal([1., 2.], [1., 2., 3.])", "d.Normal('a', 'b')", "d.Normal(0., 1.).copy(foo=3.)",
    "d.Normal(0., 1.).prob('a')", "d.Normal(0., 1.).covariance()",
    "d.Laplace(0., -1., validate_args=True)", "d.Laplace(0., 1.).quantile(.5)",
    "d.Uniform(2., 1., validate_args=True)", "d.Uniform(0, 1)", "d.Uniform().mode()", "d.Uniform().quantile(.5)",
    "d.Gamma(-1., 1., validate_args=True)", "d.Gamma(1., -1., validate_args=True)",
    "d.Gamma(1., 1., validate_args=True).prob(-1.)", "d.Gamma(1., 1., validate_args=True).cdf(-1.)",
    "d.Gamma(1., 1., allow_nan_stats=False).mode()", "d.Gamma(1., 1.).quantile(.5)",
    "d.Exponential(-1., validate_args=True)", "d.Exponential(2., allow_nan_stats=False).mode()",
    "d.Beta()", "d.Beta(1.)", "d.Beta(-1., 1., validate_args=True)", "d.Beta(1., -1., validate_args=True)",
    "d.Beta(1., 1., validate_args=True).prob(2.)", "d.Beta(1., 1., allow_nan_stats=False).mode()",
    "d.Dirichlet(.1)", "d.Dirichlet(.1, validate_args=True)", "d.Dirichlet([-1., 1.], validate_args=True)",
    "d.Dirichlet([1., 1.], validate_args=True).prob([.3, .3])", "d.Dirichlet([1., 1.], allow_nan_stats=False).mode()",
    "d.StudentT(-1., 0., 1., validate_args=True)", "d.StudentT(1., 0., 1., allow_nan_stats=False).mean()",
    "d.StudentT(1., 0., 1., allow_nan_stats=False).variance()",
    "d.Multinomial(2.5, [1., 1.], validate_args=True)", "d.Multinomial(-2., [1., 1.], validate_args=True)",
    "d.Multinomial(2., [1., 1.], validate_args=True).prob([1., 2.])",
    "d.Multinomial(2., [1., 1.], validate_args=True).prob([.5, 1.5])", "d.Multinomial(2., [1., 1.]).entropy()",
    "d.DirichletMultinomial(2., [1., 1.], validate_args=True).prob([1., 2.])",
    "d.DirichletMultinomial(2., [1., -1.], validate_args=True)", "d.DirichletMultinomial(2., [1., 1.]).mode()",
    "d.kl_divergence(d.Normal(0., 1.), d.Gamma(1., 1.))", "d.Laplace(0., 1.).kl_divergence(d.Laplace(0., 1.))",
    "d.Normal(0., 1.).kl_divergence(d.Uniform())", "d.RegisterKL(d.Normal, d.Normal)(lambda a, b, name=None: 1)",
    "d.RegisterKL(d.Normal, d.Uniform)(3)", "d.Normal.param_static_shapes(tf.TensorShape([None, 3]))",
    "d.Normal.param_static_shapes(tf.placeholder(tf.int32))", "d.Dirichlet.param_shapes([2])",
    "d.kl_divergence(d.Normal(NAN, 1.), d.Normal(0., 1.), allow_nan_stats=False)",
]  # fmt: skip


def made(tf, kind, arguments, dtype):
    """The distribution of constants, and these constants."""
    constants = {name: tf.constant(value, dtype, name="given_" + name) for name, value in arguments.items()}
    return getattr(tf.distributions, kind)(**constants), [constants[name] for name in sorted(constants)]


def described(tf, make):
    """What a call gives: the value with its dtype, static shape and name, or the class of its error."""
    try:
        tensor = make()
        with tf.Session() as session:
            value = session.run(tensor)
    except Exception as error:  # whatever the library raises is the answer
        return {"error": type(error).__name__}
    shape = None if tensor.shape.ndims is None else tensor.shape.as_list()
    return {
        "value": np.asarray(value).astype(float).tolist(),
        "dtype": tensor.dtype.base_dtype.name,
        "shape": shape,
        "name": tensor.name,
    }


def answers(tf, kind, arguments, dtype, values):
    """What each method answers, with the gradients of log_prob and the shapes of samples."""
    found = {}

    def ask(what, make):
        with tf.Graph().as_default():
            distribution, constants = made(tf, kind, arguments, dtype)
            found[what] = described(tf, lambda: make(distribution, constants))

    numbers = np.asarray(values)
    given = numbers.astype(dtype if numbers.dtype.kind == "f" else "int32")
    for method in OF_VALUES:
        ask(method, lambda d, _, method=method: getattr(d, method)(given))
    for method in STATISTICS + SHAPES:
        ask(method, lambda d, _, method=method: getattr(d, method)())
    if kind == "Normal":
        points = np.asarray([0.0, 1e-5, 0.05, 0.5, 0.7, 0.99, 1.0]).reshape([-1] + [1] * np.ndim(given))
        ask("quantile", lambda d, _: d.quantile(points.astype(dtype)))
    ask("gradients", lambda d, constants: flat_gradients(tf, d.log_prob(given), constants))
    for sizes in ((), 3, [2, 3], [0]):
        ask("sample " + str(sizes), lambda d, _, sizes=sizes: tf.shape(d.sample(sizes, seed=1)))
    ask("sample", lambda d, _: tf.zeros_like(d.sample([2])))
    return found


def flat_gradients(tf, result, constants):
    """The gradients of a result's sum, one vector; 0 for what it does not depend on."""
    gradients = tf.gradients(result, constants)
    parts = [tf.zeros_like(c) if g is None else g for g, c in zip(gradients, constants)]
    return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)


def divergence(tf, kind, a, b):
    """KL and cross entropy of two distributions of a kind, float32."""
    with tf.Graph().as_default():
        first, second = made(tf, kind, a, "float32")[0], made(tf, kind, b, "float32")[0]
        return {
            "function": described(tf, lambda: tf.distributions.kl_divergence(first, second)),
            "method": described(tf, lambda: first.kl_divergence(second)),
            "cross_entropy": described(tf, lambda: first.cross_entropy(second)),
        }


def fault(tf, text):
    """The class of the error of an expression, or of a step with its value."""
    with tf.Graph().as_default():
        try:
            result = eval(text, {"tf": tf, "d": tf.distributions, "NAN": NAN})
            if isinstance(result, tf.distributions.Distribution):
                result = result.mean()
            with tf.Session() as session:
                session.run(result)
        except Exception as error:  # whatever the library raises is the answer
            return type(error).__name__
    return None
