"""softmax_regression and perceptron in torch: eager or, with VARIANT=compile, compiled."""

import os

import torch
from shapes import network
from torch import nn

from measuring import median_seconds, report

settings, images, labels = network()
layers = []
for rows, columns in zip(settings["sizes"], settings["sizes"][1:]):
    layers += [nn.ReLU()] * bool(layers) + [nn.Linear(rows, columns)]
model = nn.Sequential(*layers)
if settings["adam"]:
    optimizer = torch.optim.Adam(model.parameters(), settings["rate"], fused=True)
else:
    optimizer = torch.optim.SGD(model.parameters(), settings["rate"])


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x), y)


if os.environ["VARIANT"] == "compile":
    loss_of = torch.compile(loss_of)


def step():
    loss = loss_of(torch.from_numpy(images), torch.from_numpy(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


report("step", median_seconds(step, 20) * 1e3, "ms")
