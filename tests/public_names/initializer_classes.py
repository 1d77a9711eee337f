"""Calls of the public members of the classes of `tf.initializers`, and of their names in `tf`."""

from class_calls import ClassCalls, product

# Of random values only what does not depend on the generator is compared.
MEMBERS = {
    "__init__": "[type(it).__name__, type(it) is type(make())]",
    "from_config": "[[value_of(new), new.get_config()] for new in [type(it).from_config(it.get_config())]]",
    "get_config": "it.get_config()",
}


def made_by(call: str, value: str) -> str:
    """A program with `make`, an initialiser `it` that it made, and `value_of` one."""
    return f"""
make = lambda: {call}
it = make()
def value_of(initializer):
    value = initializer([3, 3])
    return {value}
"""


ALL, SHAPE = "value", "value.shape"
WITHIN = "[value.shape, tf.reduce_all(tf.abs(value) <= {})]"
CALLS = {
    "constant": ("({}([1.0, 2.0, 3.0] * 3, tf.float64))", ALL),
    "identity": ("{}(2.0)", ALL),
    "ones": ("{}(tf.int32)", ALL),
    "orthogonal": ("{}(2.0, 3)", "tf.matmul(value, value, transpose_a=True)"),
    "random_normal": ("{}(1.0, 2.0, 3)", SHAPE),
    "random_uniform": ("{}(-1.0, 0.5, 3)", WITHIN.format("1.0")),
    "truncated_normal": ("{}(0.0, 0.5, 3)", WITHIN.format("1.0")),
    "uniform_unit_scaling": ("{}(1.5, 3)", WITHIN.format("1.5")),
    "variance_scaling": ("{}(1.0, 'fan_avg', 'uniform', 3)", WITHIN.format("1.0")),
    "zeros": ("{}(tf.float64)", ALL),
}
SETUPS = {
    name: made_by(call.format(f"tf.initializers.{name}"), value) for name, (call, value) in CALLS.items()
}
MODULE = ClassCalls(
    "tf.initializers",
    """
v = tf.Variable([1.0, 2.0])
w = tf.Variable([3], collections=[tf.GraphKeys.LOCAL_VARIABLES])
def after(initializer, variable):
    with tf.Session() as session:
        session.run(initializer)
        return session.run(variable)
""",
    {
        "global_variables": "after(tf.initializers.global_variables(), v)",
        "local_variables": "after(tf.initializers.local_variables(), w)",
        "variables": "after(tf.initializers.variables([v, w]), [v, w])",
    },
)
TABLES = [*product("tf.initializers", SETUPS, MEMBERS, {}), MODULE]
