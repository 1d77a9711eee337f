"""Autoencoders and GANs in torch; VARIANT: eager, or any of channels_last and compile, joined by '_'."""

import os

import torch
from families import generative_cases, values
from families_torch import optimiser, tensors
from torch.nn import functional

from measuring import report, settled_seconds

variant = os.environ["VARIANT"]


class Networks:
    """The two networks over the same parameters, however often applied."""

    def __init__(self, model, p):
        self.model, self.p = model, p
        self.depth = len(model.filters or model.hidden)
        self.activation = getattr(functional, model.activation)
        self.before = (model.window - 2) // 2  # padding of SAME with stride 2 on even sides
        self.after = model.window - 2 - self.before

    def encoder(self, x):
        for i in range(self.depth):
            x = self.activation(self.layer(f"encoder{i}", x))
        return self.layer(f"encoder{self.depth}", x.flatten(1))

    def decoder(self, z):
        x = self.layer("decoder0", z)
        if self.model.filters:
            height, width, channels = self.model.smallest
            x = x.unflatten(1, (channels, height, width))
            if "channels_last" in variant:
                x = x.contiguous(memory_format=torch.channels_last)
        for i in range(1, self.depth + 1):
            x = self.layer(f"decoder{i}", self.activation(x))
        return x

    def layer(self, name, x):
        weights, bias = self.p[name], self.p[name + "_bias"]
        if weights.ndim == 2:
            return functional.linear(x, weights, bias)
        if name.startswith("encoder"):
            if self.before == self.after:
                return functional.conv2d(x, weights, bias, 2, self.before)
            x = functional.pad(x, (self.before, self.after) * 2)
            return functional.conv2d(x, weights, bias, 2)
        scale = self.p.get(name + "_scale")
        own = None if scale is not None else bias
        x = functional.conv_transpose2d(x, weights, own, 2, self.before)
        if self.before != self.after:
            x = x[..., :-1, :-1]
        if scale is not None:
            x = functional.batch_norm(x, None, None, scale, bias, training=True, eps=1e-3)
        return x


def initial(model):
    """Dense weights as [outputs, inputs], filters as torch has them, planes before pixels."""
    made = values(model.shapes(), model.dtype)
    for name, value in made.items():
        if name.endswith(("bias", "scale")):
            continue
        if value.ndim == 4:
            value = value.transpose(3, 2, 0, 1)
        elif model.filters and name == "decoder0":
            value = value.reshape(-1, *model.smallest).transpose(0, 3, 1, 2).reshape(value.shape).T
        elif model.filters:
            value = value.reshape(*model.smallest, -1).transpose(3, 2, 0, 1).reshape(value.shape[::-1])
        else:
            value = value.T
        made[name] = value.copy()
    return made


def entropy(labels, logits):
    return functional.binary_cross_entropy_with_logits(logits, labels)


def measure(label, model):
    p = tensors(initial(model))
    if "channels_last" in variant:
        for each in p.values():
            if each.ndim == 4:
                each.data = each.data.contiguous(memory_format=torch.channels_last)
    networks = Networks(model, p)
    images, codes = model.data()
    if model.filters:
        images = images.transpose(0, 3, 1, 2)
        images = images if "channels_last" in variant else images.copy()

    def autoencoder(x, z):
        return functional.mse_loss(networks.decoder(networks.encoder(x)).sigmoid(), x)

    def variational(x, z):
        mean, logarithm = networks.encoder(x).chunk(2, 1)
        z = torch.randn_like(mean) if z is None else z
        logits = networks.decoder(mean + (0.5 * logarithm).exp() * z)
        divergence = -0.5 * (1 + logarithm - mean * mean - logarithm.exp()).sum()
        likelihood = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        return (likelihood + divergence) / model.batch

    def judged(x, z):
        with torch.no_grad():
            made = networks.decoder(z).sigmoid()
        real, drawn = networks.encoder(x), networks.encoder(made)
        return entropy(torch.ones_like(real), real) + entropy(torch.zeros_like(drawn), drawn)

    def deceived(x, z):
        drawn = networks.encoder(networks.decoder(z).sigmoid())
        return entropy(torch.ones_like(drawn), drawn)

    def decoded(x, z):
        return networks.decoder(networks.encoder(x) if model.kind == "autoencoder" else z).sigmoid()

    adversarial = [(judged, "encoder"), (deceived, "decoder")]
    own = {"autoencoder": [(autoencoder, "")], "variational": [(variational, "")]}.get(
        model.kind, adversarial
    )
    if "compile" in variant:
        own, decoded = [(torch.compile(loss), prefix) for loss, prefix in own], torch.compile(decoded)
    parts = [[p[name] for name in p if name.startswith(prefix)] for _, prefix in own]
    updates = [optimiser(model.optimiser, part, model.rate) for part in parts]

    def step(known=model.kind != "variational"):
        found = []
        for (loss_of, _), part, update in zip(own, parts, updates):
            loss = loss_of(torch.from_numpy(images), torch.from_numpy(codes) if known else None)
            gradients = torch.autograd.grad(loss, part)
            for parameter, gradient in zip(part, gradients):
                parameter.grad = gradient
            update.step()
            found.append(loss.item())
        return found

    def decode():
        with torch.inference_mode():
            return decoded(torch.from_numpy(images), torch.from_numpy(codes)).numpy()

    print("losses" + label, *[step(True) for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("images" + label, settled_seconds(decode) * 1e3, "ms")


for label, model in generative_cases():
    measure(label, model)
