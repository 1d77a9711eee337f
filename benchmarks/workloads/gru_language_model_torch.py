"""gru_language_model in torch: nn.GRU, which resets the state after its product instead of before; with
VARIANT=cell or compile, the cell of the other implementations in Python."""

import os

import torch
from torch import nn
from words import GRULanguageModel, parameters

from measuring import median_seconds, report

settings = GRULanguageModel()
words, next_words = settings.words()
variant = os.environ["VARIANT"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
initial = {name: torch.from_numpy(value) for name, value in parameters(settings.shapes()).items()}


class Unrolled(nn.Module):
    """The recurrence as a loop in Python."""

    def __init__(self):
        super().__init__()
        self.gates, self.candidate = nn.Parameter(initial["gates"]), nn.Parameter(initial["candidate"])
        self.gates_bias = nn.Parameter(initial["gates_bias"])
        self.candidate_bias = nn.Parameter(initial["candidate_bias"])

    def forward(self, x):
        h = x.new_zeros(settings.batch, settings.units)
        outputs = []
        for t in range(settings.steps):
            joined = torch.cat([x[:, t], h], 1)
            r, u = torch.addmm(self.gates_bias, joined, self.gates).sigmoid().chunk(2, 1)
            joined = torch.cat([x[:, t], r * h], 1)
            h = u * h + (1 - u) * torch.addmm(self.candidate_bias, joined, self.candidate).tanh()
            outputs.append(h)
        return torch.stack(outputs, 1), None


class LanguageModel(nn.Module):
    """Embedding, recurrence, soft-max."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(initial["embedding"], freeze=False)
        self.recurrence = Unrolled() if variant else nn.GRU(settings.units, settings.units, batch_first=True)
        self.softmax = nn.Linear(settings.units, settings.vocabulary)
        self.softmax.weight = nn.Parameter(initial["softmax"].t().contiguous())
        self.softmax.bias = nn.Parameter(initial["softmax_bias"])

    def forward(self, x, y):
        outputs, _ = self.recurrence(self.embedding(x))
        return nn.functional.cross_entropy(self.softmax(outputs).flatten(0, 1), y.flatten())


loss_of = model = LanguageModel().to(device)
optimizer = torch.optim.SGD(model.parameters(), settings.rate)
if variant == "compile":
    loss_of = torch.compile(model, mode="reduce-overhead" if device.type == "cuda" else "default")


def step():
    loss = loss_of(torch.from_numpy(words).to(device), torch.from_numpy(next_words).to(device))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), settings.norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


print("losses", *[step() for _ in range(3)])
report("step", median_seconds(step, 3) * 1e3, "ms")
