"""The loop and the conditionals in Python over torch's ops or, with VARIANT=compile, by torch's own operators
for them, compiled; these have no gradient of loops.
"""

import os

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


def loop_operator(x):
    def body(i, count, result):
        return i + 1, count + 1.0, weights @ result

    first = torch.tensor(0), torch.tensor(0.0), x
    _, count, result = while_loop(lambda i, count, result: i < ITERATIONS, body, first)
    return count + result.sum()


def cond_operators(z):
    for _ in range(CONDITIONALS):
        z = torch.cond(z > 0.0, lambda z: z - 1.0, lambda z: z + 1.0, (z,))
    return z


compiled = os.environ["VARIANT"] == "compile"
if compiled:
    from torch._higher_order_ops.while_loop import while_loop

    loop, compiled_conditionals = torch.compile(loop_operator), torch.compile(cond_operators)

    def conditionals(z):
        return compiled_conditionals(z).item()


def us(function, parts):
    return median_seconds(function) / parts * 1e6


with torch.no_grad():
    report("while_loop iteration", us(lambda: loop(torch.from_numpy(vector)).item(), ITERATIONS), "us")
    report("cond", us(lambda: conditionals(torch.tensor(1.0)), CONDITIONALS), "us")
if not compiled:
    report("with its gradient", us(with_gradient, ITERATIONS), "us")
