"""Writes docs/ops.md: the ops of TensorFlow, and what flowstone has of each.

    python docs/make_ops_page.py

TensorFlow's ops are read from `tests/golden/ops_facts`, the rest is asked of the declarations.
"""

from __future__ import annotations

import re
from pathlib import Path

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ops.md"
FACTS = ROOT / "tests" / "golden" / "ops_facts"
# Ops of numbers that run on the host alone, by the reason. Those of texts, resources and handles do, since
# these are there; a GPU's values are copied to them.
HOST_REASONS = {
    "it draws from a sequential generator, whose numbers must be TensorFlow's": (
        "AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler "
        "LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler RandomCrop "
        "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 StatelessSampleDistortedBoundingBox "
        "KMC2ChainInitialization KmeansPlusPlusInitialization SkipGramGenerateCandidates"
    ),
    "it looks a few numbers up in a table of the host, or draws them one after the other": (
        "BoostedTreesBucketize BoostedTreesCalculateBestGainsPerFeature BoostedTreesMakeQuantileSummaries"
        " BoostedTreesMakeStatsSummary BucketizeWithInputBoundaries QuantileBuckets Quantiles"
        " StatsAccumulatorScalarMakeSummary StatsAccumulatorTensorMakeSummary ComputeAccidentalHits"
        " SobolSample UnicodeScript"
    ),
    "its result has a size that the values decide, and whoever takes it needs that on the host": (
        "RaggedCountSparseOutput RaggedCross DenseCountSparseOutput SparseCountSparseOutput "
        "DenseToDenseSetOperation DenseToSparseSetOperation "
        "SparseToSparseSetOperation SetSize SparseCross SparseCrossHashed SparseFeatureCross"
    ),
    "it keeps values in the session's containers, which are the host's": (
        "AddManySparseToTensorsMap AddSparseToTensorsMap TakeManySparseFromTensorsMap DeserializeSparse "
        "SdcaOptimizer Batch BatchFunction Unbatch UnbatchGrad"
    ),
    "it calls Python, or speaks to the host: its files, its clock, its log": (
        "PyFunc PyFuncStateless EagerPyFunc ImmutableConst Timestamp Print Assert"
    ),
}
GRADIENTS = {"function": "yes", "not differentiable": "none flows", "none": "an error to ask"}


def names(facts: str) -> list[str]:
    """The ops of a file of facts, sorted."""
    return sorted(set(re.findall(r"^(\w+)\(", (FACTS / facts).read_text(), re.MULTILINE)))


def row(name: str) -> str:
    """The line of one op."""
    declaration = registry.get(name)
    if declaration is None:
        return f"| {name} | | |"
    kernels = " ".join(device for device in (CPU, GPU) if device in declaration.kernels)
    removed = f", until version {declaration.deprecated[0] - 1}" if declaration.deprecated else ""
    return f"| {name} | {kernels}{removed} | {GRADIENTS[declaration.gradient_kind]} |"


def on_host_alone() -> list[str]:
    """The ops whose inputs and outputs are numbers, and which have no kernel for GPUs."""
    found = []
    for facts in sorted(FACTS.glob("*-ops.txt")):
        for name, signature in re.findall(r"^(\w+)(\(.*?)(?: ; .*)?$", facts.read_text(), re.MULTILINE):
            declaration = registry.get(name)
            is_numeric = ":" in signature and not re.search(r"string|resource|variant|Ref\(", signature)
            if is_numeric and declaration is not None and GPU not in declaration.kernels:
                found.append(name)
    return sorted(set(found))


def reasons() -> list[str]:
    """The list of why ops of numbers run on the host alone."""
    return [f"- {', '.join(sorted(ops.split()))}: {why}." for why, ops in HOST_REASONS.items()]


def table(ops: list[str]) -> list[str]:
    """A table of ops."""
    return ["| op | kernels | gradient |", "| --- | --- | --- |", *map(row, ops)]


def page() -> str:
    """The text of the page."""
    first = names("tensorflow-1.4-ops.txt")
    later = sorted({*names("later-ops.txt"), *names("more-ops.txt")} - set(first))
    counts = [sum(name in registry for name in ops) for ops in (first, later)]
    lines = [
        "# The ops of TensorFlow, and their state here",
        "",
        "Made by `docs/make_ops_page.py` from the declarations. *Kernels*: the devices that run the op (none",
        "if it is missing), of deprecated ops the last version of GraphDefs that has them. *Gradient*:",
        "whether gradients flow through it, or none does, or it is an error to ask.",
        "",
        f"## TensorFlow 1.4: {counts[0]} of {len(first)}",
        "",
        *table(first),
        "",
        f"## Later versions: {counts[1]} of {len(later)}",
        "",
        *table(later),
        "",
        "## Numbers on the host alone",
        "",
        "Texts, resources and handles are on the host, and so are the kernels of their ops. Of the ops whose",
        "inputs and outputs are numbers, these have no kernel for GPUs:",
        "",
        *reasons(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
