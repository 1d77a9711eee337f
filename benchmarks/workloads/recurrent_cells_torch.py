"""The cells in torch: nn.LSTM and nn.GRU (whose reset gate acts after the product) where they have the cell,
with packed sequences; with VARIANT=cell or compile, the cell in Python."""

import os

import numpy as np
import torch
from families import recurrence_cases, values
from families_torch import optimiser, tensors
from torch import nn
from torch.nn import functional

from measuring import report, settled_seconds

variant = os.environ["VARIANT"]


class Unrolled:
    """The recurrence as a loop in Python; past a sequence's end its state stays."""

    def __init__(self, model, p):
        self.model, self.p = model, p
        self.cell = {"gru": self.gru, "basic": self.basic}.get(model.cell, self.lstm)

    def __call__(self, x, lengths):
        state = [x.new_zeros(len(x), self.model.state)]
        if self.cell == self.lstm:
            state.insert(0, x.new_zeros(len(x), self.model.units))
        for t in range(self.model.steps):
            new = self.cell(x[:, t], *state)
            if self.model.lengths:
                goes_on = (t < lengths)[:, None]
                new = [torch.where(goes_on, a, b) for a, b in zip(new, state)]
            state = new
        return state[-1]

    def basic(self, x, h):
        return [torch.addmm(self.p["bias"], torch.cat([x, h], 1), self.p["kernel"]).tanh()]

    def gru(self, x, h):
        p = self.p
        gates = torch.addmm(p["gates_bias"], torch.cat([x, h], 1), p["gates"]).sigmoid()
        r, u = gates.chunk(2, 1)
        candidate = torch.addmm(p["candidate_bias"], torch.cat([x, r * h], 1), p["candidate"])
        return [u * h + (1 - u) * candidate.tanh()]

    def lstm(self, x, c, h):
        p, kind = self.p, self.model.cell
        joined = torch.cat([x, h], 1)
        product = torch.addmm(p["bias"], joined, p["kernel"]) if "bias" in p else joined @ p["kernel"]
        i, j, f, o = product.chunk(4, 1)
        if kind == "normalised":
            i, j, f, o = (self.normalised(gate, name) for gate, name in zip((i, j, f, o), "ijfo"))
        if kind == "peephole":
            i, f = i + p["w_i_diag"] * c, f + p["w_f_diag"] * c
        c = c * (f + 1).sigmoid() + i.sigmoid() * j.tanh()
        if kind == "peephole":
            o = o + p["w_o_diag"] * c
        if kind == "normalised":
            c = self.normalised(c, "c")
        h = o.sigmoid() * c.tanh()
        return [c, h @ p["projection"] if kind == "projected" else h]

    def normalised(self, x, name):
        scale, offset = self.p[f"{name}_scale"], self.p[f"{name}_offset_bias"]
        return functional.layer_norm(x, x.shape[1:], scale, offset, 1e-5)


class Library(nn.Module):
    """torch's own layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        projected = {"proj_size": model.projected} if model.cell == "projected" else {}
        kind = {"gru": nn.GRU, "basic": nn.RNN}.get(model.cell, nn.LSTM)
        dtype = getattr(torch, model.dtype)
        self.layer = kind(model.inputs, model.units, batch_first=True, dtype=dtype, **projected)

    def __call__(self, x, lengths):
        if self.model.lengths:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, state = self.layer(x)
        return (state if isinstance(state, torch.Tensor) else state[0])[0]


def measure(label, model):
    p = tensors(values(model.shapes(), model.dtype))
    library = not variant and model.cell not in ("peephole", "normalised")
    recurrence = Library(model) if library else Unrolled(model, p)
    own = {name: value for name, value in p.items() if not library or name.startswith("classes")}
    parameters = [*own.values(), *(recurrence.parameters() if library else ())]
    update = optimiser(model.optimiser, parameters, model.rate)
    x, labels, lengths = map(np.asarray, model.sequences())

    def loss_of(x, labels, lengths):
        logits = torch.addmm(p["classes0_bias"], recurrence(x, lengths), p["classes0"])
        return functional.cross_entropy(logits, labels)

    own_loss = torch.compile(loss_of) if variant == "compile" else loss_of

    def forward():
        with torch.no_grad():
            return own_loss(*map(torch.from_numpy, (x, labels, lengths))).item()

    def step():
        loss = own_loss(*map(torch.from_numpy, (x, labels, lengths)))
        update.zero_grad()
        loss.backward()
        update.step()
        return loss.item()

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("forward" + label, settled_seconds(forward) * 1e3, "ms")


for label, model in recurrence_cases():
    measure(label, model)
