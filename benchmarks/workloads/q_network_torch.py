"""q_network in torch: eager or, with VARIANT=compile, loss and values compiled."""

import os

import torch
from families import q_network_cases, values
from families_torch import optimiser, tensors
from torch.nn import functional

from measuring import report, settled_seconds


def action_values(model, p, prefix, x):
    activation = getattr(torch, model.activation)
    for i in range(len(model.hidden) + 1):
        x = torch.addmm(p[f"{prefix}{i}_bias"], activation(x) if i else x, p[f"{prefix}{i}"])
    return x


def loss_of(model, p, observed, actions, rewards, following, ends):
    with torch.no_grad():
        best = action_values(model, p, "target", following).amax(1)
        targets = rewards + (1 - ends) * model.discount * best
    chosen = action_values(model, p, "value", observed).gather(1, actions[:, None].long())[:, 0]
    return (functional.huber_loss if model.huber else functional.mse_loss)(chosen, targets)


def best_action(model, p, observed):
    return action_values(model, p, "value", observed).argmax(1)


def measure(label, model):
    p = tensors(values(model.shapes(), model.dtype))
    updates = optimiser(model.optimiser, (p[name] for name in p if name.startswith("value")), model.rate)
    fed = model.transitions()
    own_loss, own_action = loss_of, best_action
    if os.environ["VARIANT"] == "compile":
        own_loss, own_action = torch.compile(loss_of), torch.compile(best_action)

    def step():
        loss = own_loss(model, p, *map(torch.from_numpy, fed))
        updates.zero_grad()
        loss.backward()
        updates.step()
        return loss.item()

    def act():
        with torch.inference_mode():
            return own_action(model, p, torch.from_numpy(fed[0][:1])).numpy()

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("action" + label, settled_seconds(act) * 1e3, "ms")


for label, model in q_network_cases():
    measure(label, model)
