"""wide_and_deep in JAX: the whole step one compiled function, parameters donated; gradients are of whole
tables or, with VARIANT=rows, of the rows that a step reads."""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from families import values, wide_and_deep_cases
from families_jax import optimiser

from measuring import report, settled_seconds

by_rows = os.environ["VARIANT"] == "rows"


def updated_rows(update, table, state, rows, gradients):
    """The update of a table in the rows that were read, each once, by the sum of its gradients."""
    unique, places = jnp.unique(rows, return_inverse=True, size=len(rows), fill_value=len(table))
    sums = jnp.zeros_like(gradients).at[places].add(gradients)
    arrays = [each for each in state if each.shape == table.shape]
    few = iter([each.at[unique].get(mode="clip") for each in arrays])
    own = tuple(next(few) if each.shape == table.shape else each for each in state)
    new, own = update(table.at[unique].get(mode="clip"), own, sums)
    state = tuple(
        whole.at[unique].set(part, mode="drop") if whole.shape == table.shape else part
        for whole, part in zip(state, own)
    )
    return table.at[unique].set(new, mode="drop"), state


def measure(label, model):
    rows, buckets, ids, numbers, labels = model.examples()
    rows, buckets, ids = (each.astype("int32") for each in (rows, buckets, ids))
    p = {name: jnp.array(value) for name, value in values(model.shapes()).items()}
    tables = {name: p.pop(name) for name in list(p) if name.startswith("table")}
    tables["wide"] = jnp.zeros((model.buckets, 1))
    names = {name: "ftrl" if name == "wide" else model.optimiser for name in tables}
    of_tables = {name: optimiser(names[name], table, model.rate) for name, table in tables.items()}
    first, update = optimiser(model.optimiser, p, model.rate)

    def gathered(tables, buckets, ids):
        columns = {f"table{i}": tables[f"table{i}"][ids[:, i]] for i in range(model.columns)}
        return {**columns, "wide": tables["wide"][buckets]}

    def logits_of(p, read, rows, numbers):
        x = jnp.concatenate([*(read[f"table{i}"] for i in range(model.columns)), numbers], 1)
        for i in range(len(model.hidden) + 1):
            x = (jax.nn.relu(x) if i else x) @ p[f"deep{i}"] + p[f"deep{i}_bias"]
        return x + jax.ops.segment_sum(read["wide"], rows, model.batch, indices_are_sorted=True)

    def loss_of(p, read, rows, numbers, labels):
        logits = logits_of(p, read, rows, numbers)
        return jnp.mean(jax.nn.softplus(logits) - labels * logits)

    def of_whole(p, tables, rows, buckets, ids, numbers, labels):
        return loss_of(p, gathered(tables, buckets, ids), rows, numbers, labels)

    @partial(jax.jit, donate_argnums=0)
    def train(state, rows, buckets, ids, numbers, labels):
        p, own, tables, of = state
        read = gathered(tables, buckets, ids)
        if by_rows:
            loss, (g, g_read) = jax.value_and_grad(loss_of, (0, 1))(p, read, rows, numbers, labels)
        else:
            loss, (g, g_read) = jax.value_and_grad(of_whole, (0, 1))(
                p, tables, rows, buckets, ids, numbers, labels
            )
        p, own = update(p, own, g)
        new, new_of = {}, {}
        for name in tables:
            one = of_tables[name][1], tables[name], of[name]
            if by_rows:
                read_rows = buckets if name == "wide" else ids[:, int(name.removeprefix("table"))]
                new[name], new_of[name] = updated_rows(*one, read_rows, g_read[name])
            else:
                new[name], new_of[name] = one[0](tables[name], of[name], g_read[name])
        return loss, (p, own, new, new_of)

    @jax.jit
    def probabilities(p, tables, rows, buckets, ids, numbers):
        return jax.nn.sigmoid(logits_of(p, gathered(tables, buckets, ids), rows, numbers))

    state = (p, first, tables, {name: each[0] for name, each in of_tables.items()})

    def step():
        nonlocal state
        loss, state = train(state, rows, buckets, ids, numbers, labels)
        return float(loss)

    def predict():
        return np.asarray(probabilities(state[0], state[2], rows, buckets, ids, numbers))

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("predict" + label, settled_seconds(predict) * 1e3, "ms")


for label, model in wide_and_deep_cases():
    measure(label, model)
