"""new_shapes: see new_shapes_tf1.py. Eager: torch.compile makes code for each of the first shapes."""

import statistics
import time

import torch
from shapes import NEW_SHAPES, feeds_of_new_shapes
from torch import nn
from torch.nn import functional

from measuring import report


class TextConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.last = nn.Embedding(1000, 32), nn.Linear(48, 5)
        self.convolutions = nn.ModuleList(
            [nn.Conv1d(32, 16, n, padding="same", bias=False) for n in (3, 4, 5)]
        )

    def forward(self, x, y):
        embedded = self.embedding(x).transpose(1, 2)
        pooled = [functional.relu(each(embedded)).amax(2) for each in self.convolutions]
        return functional.cross_entropy(self.last(torch.cat(pooled, 1)), y)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def forward(self, x, y):
        return functional.mse_loss(self.layers(x), y)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x.permute(0, 3, 1, 2)).mean((2, 3)).square().mean()


class Separable(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 16, 3, 2, padding=1, bias=False), nn.ReLU()]
        for inputs, outputs in ((16, 32), (32, 32), (32, 64)):
            layers.append(nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False))
            layers += [nn.Conv2d(inputs, outputs, 1, bias=False), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x.permute(0, 3, 1, 2)).mean((2, 3)).square().mean()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.last = nn.Linear(32, 1)

    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[1])[None] < lengths[:, None]).float()
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 32**0.5 - (1 - mask[:, None]) * 1e9
        found = self.last(scores.softmax(-1) @ self.value(x) + x)
        return (found.square() * mask[..., None]).sum() / mask.sum()


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(5, 8, batch_first=True)

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        return (self.layer(x)[0] * mask[..., None]).sum()


MODELS = {"perceptron": Perceptron, "text_convolutions": TextConvolutions, "images": Images}
MODELS |= {"separable": Separable, "attention": Attention, "gru": Gru}


def step_seconds(name):
    """The median of the last hundred steps."""
    model = MODELS[name]()
    optimizer, times = torch.optim.Adam(model.parameters(), 0.001, fused=True), []
    for values in feeds_of_new_shapes(name):
        begun = time.perf_counter()
        given = [torch.from_numpy(x) for x in values]
        loss = model(*[x.long() if x.dtype == torch.int32 else x for x in given])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[-100:])


for name in NEW_SHAPES:
    report(name.replace("_", " "), step_seconds(name) * 1e3, "ms")
