"""Runs workloads on every implementation in turn and prints one table with ratios.

python benchmarks/compare.py [--workloads a,b] [--peers tensorflow,torch,jax] [--rounds 3] [--seconds 2]
                             [--json FILE] [--markdown FILE] [--results all]

The peers' interpreters are those of `setup_peers.sh` ($PEERS), Flowstone's is the one that runs this script.
A peer that is missing is left out, one that fails is shown as '-'. The table's figure is the median over
rounds; `ratio` is Flowstone's figure over the best peer's (below 1 is faster). `--results` measures the
workloads of committed tables and writes these; with `--workloads`, those among them alone: what a table
says of the others stays, if it comes from this processor. `readme_table.py` makes the README's of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("PEERS", Path(tempfile.gettempdir()) / "peers"))
INTERPRETERS = {
    "flowstone": sys.executable,
    "tensorflow": str(PEERS / "tf/bin/python"),
    "torch": str(PEERS / "pt/bin/python"),
    "jax": str(PEERS / "jx/bin/python"),
}
SCRIPTS = {  # workload: the script's stem
    "session_run": "session_run",
    "softmax_regression": "network",
    "perceptron": "network",
    "graph_building": "graph_building",
    "import_time": "import_time",
    "first_run": "first_run",
    "control_flow": "control_flow",
    "queues": "queues",
    "pipelines": "pipelines",
    "checkpoints": "checkpoints",
    "records": "records",
    "parsing": "parsing",
    "sparse": "sparse",
    "language_model_small": "language_model",
    "language_model_large": "language_model",
    "bucketed": "bucketed",
    "new_shapes": "new_shapes",
    "devices": "devices",
    "executor": "executor",
    "lenet": "convolutional",
    "alexnet": "convolutional",
    "googlenet": "convolutional",
    "vgg_a": "convolutional",
    "resnet50": "convolutional",
    "mobilenet": "convolutional",
    "high_level": "high_level",
    "keras": "keras",
    "memory": "convolutional",
    "skip_gram": "skip_gram",
    "gru_language_model": "gru_language_model",
    "transformer_block": "transformer_block",
    "monitored": "monitored",
    "cluster": "cluster",
    "autoencoder": "generative",
    "variational_autoencoder": "generative",
    "convolutional_vae": "generative",
    "gan": "generative",
    "dcgan": "generative",
    "k_means": "clustering",
    "mixture": "clustering",
    "q_network": "q_network",
    "wide_and_deep": "wide_and_deep",
    "scalar_ops": "scalar_ops",
    "gru_cell": "recurrent_cells",
    "gru_cell_lengths": "recurrent_cells",
    "peephole_cell": "recurrent_cells",
    "peephole_cell_lengths": "recurrent_cells",
    "projected_cell": "recurrent_cells",
    "projected_cell_lengths": "recurrent_cells",
    "normalised_cell": "recurrent_cells",
    "normalised_cell_lengths": "recurrent_cells",
}
FAMILIES = ("generative", "clustering", "q_network", "wide_and_deep", "scalar_ops", "recurrent_cells")
SCRIPTS |= {f"{family}_neighbours": family for family in FAMILIES}
LIBRARIES = PEERS / "libraries"  # Keras, which Flowstone's environment need not have
VARIANTS = {  # of a workload or else a script, and a peer; the best variant counts
    ("session_run", "torch"): ["", "compile"],
    ("network", "torch"): ["", "compile"],
    ("control_flow", "torch"): ["", "compile"],
    ("language_model", "torch"): ["", "cell", "compile"],
    ("language_model", "jax"): ["", "unrolled"],
    # Unrolled, twice 50 time steps take minutes to compile.
    ("language_model_large", "torch"): ["", "cell"],
    ("language_model_large", "jax"): [""],
    ("convolutional", "torch"): ["", "channels_last", "compile", "compile_channels_last"],
    ("skip_gram", "torch"): ["", "compile"],
    ("gru_language_model", "torch"): ["", "cell", "compile"],
    ("transformer_block", "torch"): ["", "compile"],
    ("generative", "torch"): ["", "compile"],
    ("convolutional_vae", "torch"): ["", "channels_last", "compile", "compile_channels_last"],
    ("dcgan", "torch"): ["", "channels_last", "compile", "compile_channels_last"],
    ("clustering", "torch"): ["", "compile"],
    ("q_network", "torch"): ["", "compile"],
    ("wide_and_deep", "torch"): ["", "compile"],
    ("wide_and_deep", "jax"): ["", "rows"],
    ("scalar_ops", "torch"): ["", "compile"],
    ("recurrent_cells", "torch"): ["", "cell", "compile"],
    # Each neighbour's compilation takes much longer than its figure.
    **{(f"{family}_neighbours", "torch"): [""] for family in FAMILIES},
}
RESULTS = {  # the tables in `results`
    "steps": "session_run,softmax_regression,perceptron",
    "models": "language_model_small,language_model_large,graph_building",
    "convolutional": "lenet,alexnet,googlenet,memory",
    "other_models": "skip_gram,vgg_a,resnet50,mobilenet,transformer_block,gru_language_model",
    "generative": "autoencoder,variational_autoencoder,convolutional_vae,gan,dcgan",
    "small_models": "k_means,mixture,q_network,wide_and_deep,scalar_ops",
    "cells": ",".join(name for name in SCRIPTS if name.endswith(("_cell", "_cell_lengths"))),
    "neighbours": ",".join(f"{family}_neighbours" for family in FAMILIES),
    "dataflow": "control_flow,queues,devices,executor",
    "files": "pipelines,records,parsing,checkpoints,monitored",
    "new_shapes": "new_shapes",
    "sparse": "sparse",
    "cluster": "cluster",
    "libraries": "keras,high_level",
    "first_run": "first_run",
    "import_time": "import_time",
}


def variants(workload: str, implementation: str) -> list[str]:
    """The variants of a workload that compete for an implementation's figure."""
    default = VARIANTS.get((SCRIPTS[workload], implementation), [""])
    return VARIANTS.get((workload, implementation), default)


def script(workload: str, implementation: str) -> Path:
    """The file that measures a workload on an implementation."""
    stem = SCRIPTS[workload]
    if stem == "import_time":
        return HERE / "workloads/import_time.py"
    suffix = {"flowstone": "tf1", "tensorflow": "tf1"}.get(implementation, implementation)
    return HERE / f"workloads/{stem}_{suffix}.py"


def measure(
    workload: str,
    implementation: str,
    variant: str,
    seconds: float,
    limit: float | None = None,
    **environment: str,
) -> dict[tuple[str, str], float]:
    """One process, with more variables in its environment: {(metric, unit): value}; empty if it failed.

    `subprocess.TimeoutExpired` if it has not ended within `limit` seconds.
    """
    environment = dict(
        os.environ | environment,
        WORKLOAD=workload,
        IMPLEMENTATION=implementation,
        VARIANT=variant,
        BENCHMARK_SECONDS=str(seconds),
        TF_USE_LEGACY_KERAS="1",
        NVIDIA_TF32_OVERRIDE="0",  # full float32 on a GPU, in every implementation
        JAX_DEFAULT_MATMUL_PRECISION="highest",
    )
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
    if implementation == "flowstone" and LIBRARIES.exists():
        paths = [environment.get("PYTHONPATH", ""), str(LIBRARIES)]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    program = script(workload, implementation)
    if not program.exists():
        return {}
    command = [INTERPRETERS[implementation], str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        print(
            f"  ! {workload} on {implementation} {variant}: {done.stderr.strip().splitlines()[-1:]}",
            file=sys.stderr,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(line["metric"], line["unit"]): line["value"] for line in lines}


def collect(
    workloads: list[str], implementations: list[str], rounds: int, seconds: float, limit: float
) -> tuple[dict[str, Any], list[str]]:
    """{'workload|metric|unit|implementation': [a figure a round]}, the best variant of each round; and the
    variants, in words, that did not end within `limit` seconds, which are tried once."""
    figures: dict[str, list[float]] = {}
    endless: list[str] = []
    for workload in workloads:
        for _ in range(rounds):
            for implementation in implementations:
                best: dict[tuple[str, str], float] = {}
                for variant in variants(workload, implementation):
                    words = f"{workload} on {implementation} {variant}".rstrip()
                    if words in endless:
                        continue
                    try:
                        found = measure(workload, implementation, variant, seconds, limit)
                    except subprocess.TimeoutExpired:
                        endless.append(words)
                        continue
                    for key, value in found.items():
                        best[key] = min(value, best.get(key, value))
                for (metric, unit), value in best.items():
                    figures.setdefault("|".join((workload, metric, unit, implementation)), []).append(value)
        print(f"  {workload} done", file=sys.stderr)
    return figures, endless


def table(figures: dict[str, list[float]], implementations: list[str]) -> str:
    """The figures as a Markdown table."""
    medians = {tuple(key.split("|")): statistics.median(values) for key, values in figures.items()}
    peers = [name for name in implementations if name != "flowstone"]
    rows = [["workload", "metric", "unit", *peers, "flowstone", "ratio to the best peer"]]
    for workload, metric, unit in dict.fromkeys(key[:3] for key in medians):
        values = {name: medians.get((workload, metric, unit, name)) for name in implementations}
        best = min((values[name] for name in peers if values[name] is not None), default=None)
        own = values.get("flowstone")
        ratio = f"{own / best:.2f}" if own is not None and best else "-"
        if metric == "ops" or unit == "x":
            ratio = "-"
        shown = ["-" if values[name] is None else f"{values[name]:.4g}" for name in [*peers, "flowstone"]]
        rows.append([workload, metric, unit, *shown, ratio])
    return markdown_table(rows)


def kept(json_file: Path, workloads: list[str]) -> tuple[dict[str, list[float]], list[str]]:
    """The figures of other workloads, and what did not end, by a table's file if this processor made it."""
    if not json_file.exists():
        return {}, []
    table = json.loads(json_file.read_text())
    if table["machine"] != machine():
        return {}, []
    figures = {key: values for key, values in table["figures"].items() if key.split("|")[0] not in workloads}
    return figures, [words for words in table.get("endless", ()) if words.split()[0] not in workloads]


def markdown_table(rows: list[list[str]]) -> str:
    """A table whose first row is its heading."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def machine() -> str:
    """The processor, in words."""
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line for line in lines if line.startswith("model name")).split(":", 1)[1].strip()
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", help="all if not said")
    parser.add_argument("--results", help=f"tables of `results` to write: {', '.join(RESULTS)} or all")
    parser.add_argument("--peers", default="tensorflow,torch,jax")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--limit", type=float, default=600, help="seconds that one process may take")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    wanted = ["flowstone", *filter(None, arguments.peers.split(","))]
    implementations = [name for name in wanted if Path(INTERPRETERS[name]).exists()]
    asked = arguments.workloads.split(",") if arguments.workloads else list(SCRIPTS)
    if arguments.results is None:
        run(arguments, asked, implementations, arguments.json, arguments.markdown)
        return
    for name in RESULTS if arguments.results == "all" else arguments.results.split(","):
        stem = HERE / "results" / name
        workloads = [workload for workload in RESULTS[name].split(",") if workload in asked]
        if workloads:
            run(arguments, workloads, implementations, stem.with_suffix(".json"), stem.with_suffix(".md"))


def run(
    arguments: argparse.Namespace,
    workloads: list[str],
    implementations: list[str],
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Measures the workloads, prints their table and writes what is asked for."""
    figures, endless = collect(
        workloads, implementations, arguments.rounds, arguments.seconds, arguments.limit
    )
    if arguments.results and arguments.workloads and json_file:
        others, endless_others = kept(json_file, workloads)
        order = list(SCRIPTS)
        figures = dict(sorted((others | figures).items(), key=lambda row: order.index(row[0].split("|")[0])))
        endless = endless_others + endless
    heading = f"{machine()}; {time.strftime('%Y-%m-%d')}; medians of {arguments.rounds} rounds\n"
    text = f"{heading}\n{table(figures, implementations)}\n"
    if endless:
        text += f"\nNot ended within {arguments.limit:.0f} s: {', '.join(endless)}.\n"
    print(text)
    if json_file:
        json_file.write_text(
            json.dumps({"machine": machine(), "figures": figures, "endless": endless}, indent=1) + "\n"
        )
    if markdown:
        markdown.write_text(text)


if __name__ == "__main__":
    main()
