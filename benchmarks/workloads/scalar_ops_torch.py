"""scalar_ops in torch: eager or, with VARIANT=compile, compiled."""

import os

import torch
from families import scalar_cases

from measuring import report, settled_seconds


def chain(model, a, b):
    for _ in range(model.operations // 4):
        if model.kind == "curved":
            a, b = torch.tanh(a + b), torch.sigmoid(b - a)
        else:
            a, b = a * 0.9 + b, b - a * 0.1
    return a, b


def measure(label, model):
    fed = model.start()
    own = torch.compile(chain) if os.environ["VARIANT"] == "compile" else chain

    def run():
        with torch.inference_mode():
            return [each.numpy() for each in own(model, *map(torch.from_numpy, fed))]

    def with_gradients():
        a, b = (torch.from_numpy(value).requires_grad_() for value in fed)
        x, y = own(model, a, b)
        total = (x + y).sum()
        total.backward()
        return total.item(), a.grad.numpy(), b.grad.numpy()

    print("losses" + label, with_gradients()[0])
    report("run" + label, settled_seconds(run) * 1e3, "ms")
    report("with gradients" + label, settled_seconds(with_gradients) * 1e3, "ms")


for label, model in scalar_cases():
    measure(label, model)
