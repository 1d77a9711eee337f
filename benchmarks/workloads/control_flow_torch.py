"""The loop and the conditionals in Python over torch's ops."""

import torch
from shapes import CONDITIONALS, ITERATIONS, loop_values

from measuring import median_seconds, report

matrix, vector = loop_values()
weights, zero = torch.from_numpy(matrix), torch.tensor(0.0)


def loop(x):
    count, result = zero, x
    for _ in range(ITERATIONS):
        count = count + 1.0
        result = weights @ result
    return count + result.sum()


def with_gradient():
    x = torch.from_numpy(vector).requires_grad_()
    total = loop(x)
    total.backward()
    return total.item(), x.grad


def conditionals(z):
    for _ in range(CONDITIONALS):
        z = z - 1.0 if z > 0.0 else z + 1.0
    return z.item()


def us(function, parts):
    return median_seconds(function) / parts * 1e6


with torch.no_grad():
    report("while_loop iteration", us(lambda: loop(torch.from_numpy(vector)).item(), ITERATIONS), "us")
    report("cond", us(lambda: conditionals(torch.tensor(1.0)), CONDITIONALS), "us")
report("with its gradient", us(with_gradient, ITERATIONS), "us")
