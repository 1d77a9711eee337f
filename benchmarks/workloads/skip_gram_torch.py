"""skip_gram in torch: sparse gradients; with VARIANT=compile, dense ones and the loss compiled."""

import math
import os

import torch
from torch import nn
from words import SkipGram, parameters

from measuring import median_seconds, report

model = SkipGram()
compiled = os.environ["VARIANT"] == "compile"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
words, neighbours = model.words()


def table(value):
    rows = torch.from_numpy(value.reshape(len(value), -1))
    return nn.Embedding.from_pretrained(rows, freeze=False, sparse=not compiled).to(device)


embedding, weights, bias = tables = [table(value) for value in parameters(model.shapes()).values()]
expected = torch.from_numpy(model.expected()).log().to(device)
optimizer = torch.optim.SGD([each.weight for each in tables], model.rate)


def loss_of(x, y):
    uniform = torch.rand(model.negatives, device=device)
    drawn = (uniform * math.log(model.vocabulary + 1)).exp().sub(1).long().clamp(max=model.vocabulary - 1)
    embedded = embedding(x)
    true = (embedded * weights(y)).sum(1) + bias(y)[:, 0] - expected[y]
    noise = torch.addmm(bias(drawn)[:, 0] - expected[drawn], embedded, weights(drawn).t())
    return (nn.functional.softplus(-true) + nn.functional.softplus(noise).sum(1)).mean()


if compiled:
    loss_of = torch.compile(loss_of, mode="reduce-overhead" if device.type == "cuda" else "default")


def step():
    loss = loss_of(torch.from_numpy(words).to(device), torch.from_numpy(neighbours).to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


print("losses", *[step() for _ in range(5)])
report("step", median_seconds(step, 20) * 1e3, "ms")
