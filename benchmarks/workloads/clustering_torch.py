"""k_means and mixture in torch, the iterations in Python: eager or, with VARIANT=compile, compiled."""

import os

import torch
from families import clustering_cases

from measuring import report, settled_seconds


def k_means(model, x, means):
    def distances(means):
        return (x[:, None] - means[None]).square().sum(2)

    ones = x.new_ones(model.points)
    for _ in range(model.iterations):
        nearest = distances(means).argmin(1)
        if model.one_hot:
            chosen = torch.nn.functional.one_hot(nearest, model.centres).to(x.dtype)
            sums, counts = chosen.t() @ x, chosen.sum(0)
        else:
            sums = torch.zeros_like(means).index_add_(0, nearest, x)
            counts = x.new_zeros(model.centres).index_add_(0, nearest, ones)
        means = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], means)
    return distances(means).amin(1).sum(), means


def mixture(model, x, means):
    def log_densities(means, variances, weights):
        scaled = (x[:, None] - means).square() / variances + variances.log()
        return weights.log() - 0.5 * scaled.sum(2)

    variances, weights = torch.ones_like(means), x.new_full([model.centres], 1 / model.centres)
    for _ in range(model.iterations):
        shares = log_densities(means, variances, weights).softmax(1)
        counts = shares.sum(0)
        means = shares.t() @ x / counts[:, None]
        variances = shares.t() @ (x * x) / counts[:, None] - means * means + 1e-3
        weights = counts / model.points
    return -log_densities(means, variances, weights).logsumexp(1).sum(), means


def measure(label, model):
    points, centres = model.data()
    function = {"k_means": k_means, "mixture": mixture}[model.kind]
    if os.environ["VARIANT"] == "compile":
        function = torch.compile(function)

    def run():
        with torch.no_grad():
            loss, means = function(model, torch.from_numpy(points), torch.from_numpy(centres))
        return loss.item(), means.numpy()

    print("losses" + label, run()[0])
    report("loop" + label, settled_seconds(run) * 1e3, "ms")


for label, model in clustering_cases():
    measure(label, model)
