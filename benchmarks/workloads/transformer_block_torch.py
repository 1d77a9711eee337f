"""transformer_block in torch: its own kernels for attention and normalisation, eager or VARIANT=compile."""

import os

import torch
from torch.nn import functional
from words import TransformerBlock, parameters

from measuring import median_seconds, report

settings = TransformerBlock()
inputs, targets = settings.sequences()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Block(torch.nn.Module):
    """The mean squared error of the block's output."""

    def __init__(self):
        super().__init__()
        for name, value in parameters(settings.shapes()).items():
            rows = torch.from_numpy(value.T.copy())  # linear() takes [outputs, inputs]
            self.register_parameter(name, torch.nn.Parameter(rows))

    def forward(self, x, y):
        x = self.normalised(x + self.attended(x), self.scale1, self.offset1)
        hidden = functional.relu(functional.linear(x, self.hidden, self.hidden_bias))
        x = x + functional.linear(hidden, self.output, self.output_bias)
        return functional.mse_loss(self.normalised(x, self.scale2, self.offset2), y)

    def attended(self, x):
        joint = functional.linear(x, self.joint, self.joint_bias)
        joint = joint.view(settings.batch, settings.steps, 3, settings.heads, -1)
        found = functional.scaled_dot_product_attention(*joint.permute(2, 0, 3, 1, 4).unbind())
        return functional.linear(found.transpose(1, 2).flatten(2), self.projection, self.projection_bias)

    def normalised(self, x, scale, offset):
        return functional.layer_norm(x, [settings.units], scale, offset, settings.epsilon)


loss_of = model = Block().to(device)
optimizer = torch.optim.SGD(model.parameters(), settings.rate)
if os.environ["VARIANT"] == "compile":
    loss_of = torch.compile(model, mode="reduce-overhead" if device.type == "cuda" else "default")


def fed():
    return torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)


def forward():
    with torch.no_grad():
        return loss_of(*fed()).item()


def step():
    loss = loss_of(*fed())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


print("losses", forward(), *[step() for _ in range(3)])
report("forward", median_seconds(forward, 3) * 1e3, "ms")
report("step", median_seconds(step, 3) * 1e3, "ms")
