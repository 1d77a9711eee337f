"""scalar_ops in JAX: one compiled function."""

import jax
import jax.numpy as jnp
import numpy as np
from families import scalar_cases

from measuring import report, settled_seconds


def measure(label, model):
    fed = model.start()

    @jax.jit
    def chain(a, b):
        for _ in range(model.operations // 4):
            if model.kind == "curved":
                a, b = jnp.tanh(a + b), jax.nn.sigmoid(b - a)
            else:
                a, b = a * 0.9 + b, b - a * 0.1
        return a, b

    @jax.jit
    def both(a, b):
        return jax.value_and_grad(lambda a, b: jnp.sum(sum(chain(a, b))), (0, 1))(a, b)

    def run():
        return [np.asarray(each) for each in chain(*fed)]

    def with_gradients():
        total, gradients = both(*fed)
        return float(total), [np.asarray(each) for each in gradients]

    print("losses" + label, with_gradients()[0])
    report("run" + label, settled_seconds(run) * 1e3, "ms")
    report("with gradients" + label, settled_seconds(with_gradients) * 1e3, "ms")


for label, model in scalar_cases():
    with jax.enable_x64(model.dtype == "float64"):
        measure(label, model)
