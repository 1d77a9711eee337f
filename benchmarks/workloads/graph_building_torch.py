"""The same network as torch modules."""

import torch
from shapes import BLOCKS, block_input
from torch import nn

from measuring import median_seconds, once, report

image = block_input().transpose(0, 3, 1, 2).copy()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8, track_running_stats=False)

    def forward(self, x):
        return x + torch.relu(self.norm(self.convolution(x)))


built = []


def build():
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)])
    built.extend([model, torch.optim.SGD(model.parameters(), 1e-3, 0.9)])


def step():
    model, optimizer = built
    loss = model(torch.from_numpy(image)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


report("build", once(build), "s")
report("first run", once(step), "s")
report("step", median_seconds(step, warm_up=1) * 1e3, "ms")
