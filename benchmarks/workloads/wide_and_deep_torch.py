"""wide_and_deep in torch: sparse gradients of tables; with VARIANT=compile, dense ones, logits compiled."""

import os

import numpy as np
import torch
from families import values, wide_and_deep_cases
from families_torch import optimiser, tensors
from torch.nn import functional

from measuring import report, settled_seconds

compiled = os.environ["VARIANT"] == "compile"


def logits_of(model, p, wide, buckets, starts, ids, numbers):
    columns = [
        functional.embedding(ids[:, i], p[f"table{i}"], sparse=not compiled) for i in range(model.columns)
    ]
    x = torch.cat([*columns, numbers], 1)
    for i in range(len(model.hidden) + 1):
        x = torch.addmm(p[f"deep{i}_bias"], x.relu() if i else x, p[f"deep{i}"])
    return x + functional.embedding_bag(buckets, wide, starts, mode="sum", sparse=not compiled)


def measure(label, model):
    p = tensors(values(model.shapes()))
    wide = torch.nn.Parameter(torch.zeros(model.buckets, 1))
    rows, buckets, ids, numbers, labels = model.examples()
    starts = np.searchsorted(rows, np.arange(model.batch))
    adam = model.optimiser == "adam" and not compiled  # torch has another class for sparse gradients
    sparse = [value for name, value in p.items() if adam and name.startswith("table")]
    dense = [value for name, value in p.items() if not adam or not name.startswith("table")]
    updates = [optimiser("ftrl", [wide], model.rate), optimiser(model.optimiser, dense, model.rate)]
    if sparse:
        updates.append(optimiser("sparse adam", sparse, model.rate))
    own = torch.compile(logits_of) if compiled else logits_of

    def logits():
        return own(model, p, wide, *map(torch.from_numpy, (buckets, starts, ids, numbers)))

    def step():
        loss = functional.binary_cross_entropy_with_logits(logits(), torch.from_numpy(labels))
        loss.backward()
        for each in updates:
            each.step()
            each.zero_grad()
        return loss.item()

    def predict():
        with torch.inference_mode():
            return logits().sigmoid().numpy()

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("predict" + label, settled_seconds(predict) * 1e3, "ms")


for label, model in wide_and_deep_cases():
    measure(label, model)
