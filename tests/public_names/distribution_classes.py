"""Calls of the public members of the classes of `tf.distributions` and of its bijectors."""

from class_calls import ClassCalls, product

MEMBERS = {
    "__init__": "[type(it).__name__, it.name, it.dtype]",
    "allow_nan_stats": "[it.allow_nan_stats, make(allow_nan_stats=False).allow_nan_stats]",
    "batch_shape": "it.batch_shape",
    "batch_shape_tensor": "it.batch_shape_tensor()",
    "cdf": "it.cdf(value)",
    "copy": "[it.copy(**change).name, it.copy(**change).allow_nan_stats]",
    "covariance": "it.covariance()",
    "dtype": "it.dtype",
    "entropy": "it.entropy()",
    "event_shape": "it.event_shape",
    "event_shape_tensor": "it.event_shape_tensor()",
    "is_scalar_batch": "it.is_scalar_batch()",
    "is_scalar_event": "it.is_scalar_event()",
    "log_cdf": "it.log_cdf(value)",
    "log_prob": "it.log_prob(value)",
    "log_survival_function": "it.log_survival_function(value)",
    "mean": "it.mean()",
    "mode": "it.mode()",
    "name": "it.name",
    "param_shapes": "type(it).param_shapes([2, 3])",
    "param_static_shapes": "type(it).param_static_shapes([2, 3])",
    "parameters": "sorted(it.parameters)",
    "prob": "it.prob(value)",
    "quantile": "it.quantile(value)",
    "reparameterization_type": "it.reparameterization_type == ds.FULLY_REPARAMETERIZED",
    "sample": "it.sample([3], seed=1)[:, ..., :1].shape",
    "stddev": "it.stddev()",
    "survival_function": "it.survival_function(value)",
    "validate_args": "[it.validate_args, make(validate_args=True).validate_args]",
    "variance": "it.variance()",
}


def made_by(call: str, value: str, before: str = "") -> str:
    """A program with `make`, a distribution `it` that it made, a `value` of it, and a `change` for copies."""
    return f"""
ds = tf.distributions
{before}
make = lambda **more: {call}
it = make()
value = tf.constant({value})
change = dict(allow_nan_stats=False, name='Copied')
"""


SCALED = """
class Doubled(ds.Distribution):
    def __init__(self, validate_args=False, allow_nan_stats=True, name='Doubled'):
        ds.Distribution.__init__(
            self, tf.float32, ds.FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            dict(validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name), name=name)
    def _batch_shape(self):
        return tf.TensorShape([2])
    def _batch_shape_tensor(self):
        return tf.constant([2])
    def _event_shape(self):
        return tf.TensorShape([])
    def _event_shape_tensor(self):
        return tf.constant([], tf.int32)
    def _sample_n(self, n, seed=None):
        return tf.ones(tf.stack([n, 2]))
    def _log_prob(self, x):
        return -2.0 * x
    def _cdf(self, x):
        return 1.0 - tf.exp(-2.0 * x)
    def _mean(self):
        return tf.constant([0.5, 0.25])
    def _variance(self):
        return tf.constant([0.25, 4.0])
    def _entropy(self):
        return tf.constant([1.0, 2.0])
    def _mode(self):
        return tf.constant([0.0, 1.0])
    def _quantile(self, p):
        return p * 3.0
    @staticmethod
    def _param_shapes(sample_shape):
        return {'loc': tf.convert_to_tensor(sample_shape)}
"""
TWO, THREE = "[0.25, 0.75]", "[0.25, 0.5, 0.25]"
SETUPS = {
    "Bernoulli": made_by("ds.Bernoulli(probs=[0.25, 0.75], **more)", "[0, 1]"),
    "Beta": made_by("ds.Beta([1.5, 2.0], [3.0, 2.5], **more)", TWO),
    "Categorical": made_by("ds.Categorical(probs=[[0.25, 0.75], [0.5, 0.5]], **more)", "[0, 1]"),
    "Dirichlet": made_by("ds.Dirichlet([1.5, 2.0, 3.0], **more)", THREE),
    "DirichletMultinomial": made_by(
        "ds.DirichletMultinomial(4.0, [1.5, 2.0, 3.0], **more)", "[1.0, 2.0, 1.0]"
    ),
    "Distribution": made_by("Doubled(**more)", TWO, SCALED),
    "Exponential": made_by("ds.Exponential([1.5, 2.0], **more)", TWO),
    "Gamma": made_by("ds.Gamma([1.5, 2.0], [3.0, 2.5], **more)", TWO),
    "Laplace": made_by("ds.Laplace([0.5, 1.0], [2.0, 0.5], **more)", TWO),
    "Multinomial": made_by("ds.Multinomial(4.0, probs=[0.25, 0.25, 0.5], **more)", "[1.0, 2.0, 1.0]"),
    "Normal": made_by("ds.Normal([0.5, 1.0], [2.0, 0.5], **more)", TWO),
    "StudentT": made_by("ds.StudentT([3.5, 4.0], [0.5, 1.0], [2.0, 0.5], **more)", TWO),
    "Uniform": made_by("ds.Uniform([-1.0, 0.0], [1.0, 3.0], **more)", TWO),
}
PARAMETERS = {
    "Bernoulli": ["logits", "probs"],
    "Beta": ["concentration0", "concentration1", "total_concentration"],
    "Categorical": ["event_size", "logits", "probs"],
    "Dirichlet": ["concentration", "total_concentration"],
    "DirichletMultinomial": ["concentration", "total_concentration", "total_count"],
    "Exponential": ["concentration", "rate"],
    "Gamma": ["concentration", "rate"],
    "Laplace": ["loc", "scale"],
    "Multinomial": ["logits", "probs", "total_count"],
    "Normal": ["loc", "scale"],
    "StudentT": ["df", "loc", "scale"],
    "Uniform": ["high", "low"],
}
SPECIAL = {f"{name}.{each}": f"it.{each}" for name, own in PARAMETERS.items() for each in own}
SPECIAL["Uniform.range"] = "it.range()"
BIJECTOR_MEMBERS = {
    "__init__": "[type(it).__name__, it.name]",
    "dtype": "it.dtype",
    "event_ndims": "it.event_ndims",
    "forward": "it.forward(x)",
    "forward_event_shape": "it.forward_event_shape(tf.TensorShape([2, 3]))",
    "forward_event_shape_tensor": "it.forward_event_shape_tensor([2, 3])",
    "forward_log_det_jacobian": "it.forward_log_det_jacobian(x)",
    "graph_parents": "it.graph_parents",
    "inverse": "it.inverse(x)",
    "inverse_event_shape": "it.inverse_event_shape(tf.TensorShape([2, 3]))",
    "inverse_event_shape_tensor": "it.inverse_event_shape_tensor([2, 3])",
    "inverse_log_det_jacobian": "it.inverse_log_det_jacobian(x)",
    "is_constant_jacobian": "it.is_constant_jacobian",
    "name": "it.name",
    "validate_args": "it.validate_args",
}
AFFINE = """
Bijector = tf.distributions.bijectors.Bijector
class Affine(Bijector):
    def __init__(self):
        self.slope = tf.constant(2.0)
        Bijector.__init__(self, 0, [self.slope], True, True, tf.float32, 'affine')
    def _forward(self, x):
        return self.slope * x + 1.0
    def _inverse(self, y):
        return (y - 1.0) / self.slope
    def _inverse_log_det_jacobian(self, y):
        return -tf.log(self.slope)
it = Affine()
x = tf.constant([1.0, 2.0])
"""
IDENTITY = """
it = tf.distributions.bijectors.Identity(validate_args=True, event_ndims=1, name='same')
x = tf.constant([1.0, 2.0])
"""
MODULE = ClassCalls(
    "tf.distributions",
    "ds = tf.distributions",
    {
        "FULLY_REPARAMETERIZED": "ds.Normal(0.0, 1.0).reparameterization_type == ds.FULLY_REPARAMETERIZED",
        "NOT_REPARAMETERIZED": "ds.Bernoulli(0.5).reparameterization_type == ds.NOT_REPARAMETERIZED",
        "bijectors": "ds.bijectors.Identity().forward([1.0])",
        "kl_divergence": (
            "[ds.kl_divergence(ds.Normal(0.5, 1.0), ds.Normal([1.0, 2.0], 3.0)),"
            " ds.kl_divergence(ds.Bernoulli(probs=0.25), ds.Bernoulli(probs=0.75)),"
            " ds.kl_divergence(ds.Gamma(2.0, 1.0), ds.Gamma(1.5, 2.0)),"
            " ds.kl_divergence(ds.Beta(2.0, 1.0), ds.Beta(1.5, 2.0)),"
            " ds.kl_divergence(ds.Categorical([1.0, 2.0]), ds.Categorical([0.0, 1.5]))]"
        ),
    },
    oracle="1.4.1",
)
REGISTER = """
ds = tf.distributions
class Near(ds.Normal):
    pass
@ds.RegisterKL(Near, Near)
def divergence(p, q, name=None):
    return p.loc - 3.0 * q.loc
p, q = Near(2.0, 1.0), Near(0.5, 1.0)
"""
TABLES = [
    *product("tf.distributions", SETUPS, MEMBERS, SPECIAL),
    ClassCalls("tf.distributions.RegisterKL", REGISTER, {"__init__": "ds.kl_divergence(p, q)"}),
    ClassCalls(
        "tf.distributions.ReparameterizationType",
        "it = tf.distributions.ReparameterizationType('MINE')",
        {"__init__": "[str(it)[-5:], it == tf.distributions.ReparameterizationType('MINE'), it == it]"},
    ),
    *product(
        "tf.distributions.bijectors",
        {"Bijector": AFFINE, "Identity": IDENTITY},
        BIJECTOR_MEMBERS,
        {},
        oracle="1.4.1",
    ),
    MODULE,
]
