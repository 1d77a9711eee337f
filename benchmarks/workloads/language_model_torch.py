"""The language models in torch: nn.LSTM or, with VARIANT=cell or compile, the cell in Python."""

import os

import torch
from shapes import SENTENCES, VOCABULARY, language_model
from torch import nn

from measuring import median_seconds, report

layers, units, steps, words, next_words = language_model()
variant = os.environ["VARIANT"]


def uniform(*shape):
    return nn.Parameter(torch.rand(shape) * 0.2 - 0.1)


class Unrolled(nn.Module):
    """The recurrence as a loop in Python."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([uniform(2 * units, 4 * units) for _ in range(layers)])
        self.biases = nn.ParameterList([uniform(4 * units) for _ in range(layers)])

    def forward(self, x):
        state = [(torch.zeros(SENTENCES, units), torch.zeros(SENTENCES, units))] * layers
        outputs = []
        for t in range(steps):
            h = x[:, t]
            for layer, (c, last) in enumerate(state):
                joined = torch.cat([h, last], 1)
                i, j, f, o = torch.addmm(self.biases[layer], joined, self.weights[layer]).chunk(4, 1)
                c = c * f.sigmoid() + i.sigmoid() * j.tanh()
                h = c.tanh() * o.sigmoid()
                state = [*state[:layer], (c, h), *state[layer + 1 :]]
            outputs.append(h)
        return torch.stack(outputs, 1), None


class LanguageModel(nn.Module):
    """Embedding, recurrence, soft-max."""

    def __init__(self):
        super().__init__()
        self.embedding, self.softmax = nn.Embedding(VOCABULARY, units), nn.Linear(units, VOCABULARY)
        self.recurrence = Unrolled() if variant else nn.LSTM(units, units, layers, batch_first=True)

    def forward(self, x, y):
        outputs, _ = self.recurrence(self.embedding(x))
        return nn.functional.cross_entropy(self.softmax(outputs).flatten(0, 1), y.flatten())


model = LanguageModel()
optimizer = torch.optim.SGD(model.parameters(), 1.0)
loss_of = torch.compile(model) if variant == "compile" else model


def step():
    loss = loss_of(torch.from_numpy(words), torch.from_numpy(next_words))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return loss.item()


milliseconds = median_seconds(step, 3) * 1e3
report("static step", milliseconds, "ms")
report("dynamic step", milliseconds, "ms")
