"""The convolutional networks in torch; VARIANT: eager, or any of channels_last and compile, joined by '_'."""

import os
import sys

import shapes  # noqa: F401 - makes `measuring` importable
import torch
from resident_memory import peak, resident
from torch import nn

from measuring import median_seconds, report
from networks import (
    EPSILON,
    NETWORK,
    RATE,
    WORKLOAD,
    Concatenation,
    Convolution,
    Dense,
    Depthwise,
    GlobalAverage,
    MaxPooling,
    Residual,
    images_and_labels,
    parameters,
)

imported = resident()
variant = os.environ["VARIANT"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def activation():
    match NETWORK.activation:
        case "relu":
            return nn.ReLU(inplace=True)
        case "relu6":
            return nn.ReLU6(inplace=True)
    return nn.Tanh()


class Parallel(nn.Module):
    """Sequences of layers on the same image, joined or added."""

    def __init__(self, sequences, values, added):
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(*modules(layers, own)) for layers, own in zip(sequences, values)
        )
        self.added = added

    def forward(self, x):
        found = [branch(x) for branch in self.branches]
        return found[1].add_(found[0]) if self.added else torch.cat(found, 1)


def modules(layers, values):
    return [module for layer, own in zip(layers, values) for module in modules_of(layer, own)]


def modules_of(layer, values):
    match layer:
        case Convolution():
            made = convolution(layer, values)
        case Depthwise(size, stride):
            weights, *rest = values
            channels = weights.shape[2]
            filters = nn.Conv2d(channels, channels, size, stride, size // 2, groups=channels, bias=False)
            assign(filters.weight, weights.transpose(2, 3, 0, 1))
            return [filters, normalisation(*rest), activation()]
        case MaxPooling(size, stride, padding):
            same = padding == "SAME"
            around = size // 2 if same and stride == 1 else 0
            return [nn.MaxPool2d(size, stride, around, ceil_mode=same and stride > 1)]
        case GlobalAverage():
            return [nn.AdaptiveAvgPool2d(1)]
        case Concatenation(branches):
            return [Parallel(branches, values, added=False)]
        case Residual(body, shortcut):
            return [Parallel((shortcut, body), values, added=True), activation()]
        case Dense():
            made = dense(*values)
    return [*made, activation()] if layer.activated else made


def convolution(layer, values):
    weights, *rest = values
    size, _, channels, filters = weights.shape
    around = size // 2 if layer.padding == "SAME" else 0
    made = nn.Conv2d(channels, filters, size, layer.stride, around, bias=not NETWORK.normalised)
    assign(made.weight, weights.transpose(3, 2, 0, 1))
    if not NETWORK.normalised:
        assign(made.bias, *rest)
        return [made]
    return [made, normalisation(*rest)]


def normalisation(scale, offset):
    made = nn.BatchNorm2d(len(scale), EPSILON, track_running_stats=False)
    assign(made.weight, scale)
    assign(made.bias, offset)
    return made


def dense(weights, bias):
    made = nn.Linear(weights[..., 0].size, len(bias))
    assign(made.weight, weights.transpose(3, 2, 0, 1).reshape(len(bias), -1))
    assign(made.bias, bias)
    return [nn.Flatten(), made]


def assign(parameter, value):
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(value))


model = nn.Sequential(*modules(NETWORK.layers, parameters(NETWORK))).to(device)
images, labels = images_and_labels(NETWORK)
if "channels_last" in variant:
    model = model.to(memory_format=torch.channels_last)
    images = images.transpose(0, 3, 1, 2)
else:
    images = images.transpose(0, 3, 1, 2).copy()
optimizer = torch.optim.SGD(model.parameters(), RATE)


def eager(x, y):
    return nn.functional.cross_entropy(model(x), y)


loss_of = eager
if "compile" in variant:  # with CUDA graphs on a GPU
    loss_of = torch.compile(eager, mode="reduce-overhead" if device.type == "cuda" else "default")


def fed():
    return torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)


def forward():
    with torch.no_grad():
        return loss_of(*fed()).item()


def step():
    loss = loss_of(*fed())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def gradients(function):
    function(*fed()).backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    optimizer.zero_grad()
    return found


def check_gradients():
    """Ends the process where the compiler differentiates wrongly: 2.13 finds zeros for LeNet's filters."""
    for expected, found in zip(gradients(eager), gradients(loss_of)):
        if torch.dist(expected, found) > 0.5 * expected.norm():
            sys.exit("the compiled gradients are not the eager ones")


if WORKLOAD == "memory":
    report("peak", peak(step) - imported, "MB")
else:
    if loss_of is not eager:
        check_gradients()
    print("losses", forward(), step(), forward())
    report("forward", median_seconds(forward, 3) * 1e3, "ms")
    report("step", median_seconds(step, 3) * 1e3, "ms")
