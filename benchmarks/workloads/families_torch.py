"""Optimisers by the names of `families`, in torch."""

import torch


class Ftrl(torch.optim.Optimizer):
    """McMahan et al., 2013, without regularisation; of sparse gradients only the rows."""

    def __init__(self, parameters, rate):
        super().__init__(parameters, {"lr": rate})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                self._update(parameter, self.state[parameter], group["lr"])

    def _update(self, parameter, state, rate):
        if not state:
            state["squares"], state["linear"] = torch.full_like(parameter, 0.1), torch.zeros_like(parameter)
        gradient, rows = parameter.grad, slice(None)
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            gradient, rows = gradient.values(), gradient.indices()[0]
        before = state["squares"][rows]
        after = before + gradient * gradient
        sigma = (after.sqrt() - before.sqrt()) / rate
        linear = state["linear"][rows] + gradient - sigma * parameter[rows]
        state["squares"][rows], state["linear"][rows] = after, linear
        parameter[rows] = -linear * rate / after.sqrt()


def optimiser(name, parameters, rate):
    """As tf.train makes it with defaults, and a momentum of 0.9."""
    parameters = list(parameters)
    match name:
        case "sgd":
            return torch.optim.SGD(parameters, rate)
        case "momentum":
            return torch.optim.SGD(parameters, rate, momentum=0.9)
        case "adam":
            return torch.optim.Adam(parameters, rate, fused=True)
        case "sparse adam":
            return torch.optim.SparseAdam(parameters, rate)
        case "adagrad":
            return torch.optim.Adagrad(parameters, rate, initial_accumulator_value=0.1)
        case "rmsprop":
            return torch.optim.RMSprop(parameters, rate, alpha=0.9, eps=1e-10)
    return Ftrl(parameters, rate)


def tensors(values):
    """Parameters by name."""
    return {name: torch.nn.Parameter(torch.from_numpy(value)) for name, value in values.items()}
