"""The examples of `examples/`, run as a user runs them, and what each is there to show."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import flowstone as tf

EXAMPLES = Path(__file__).parents[1] / "examples"
Example = Callable[[str], ModuleType]


def summary_of(program: str, *arguments: str, folder: Path) -> str:
    """The last line of what `python PROGRAM ARGUMENTS` prints; it must succeed and show its progress."""
    command = [sys.executable, str(EXAMPLES / program), *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert any(re.search(r"step \d+ of \d+ .* steps/s  \d+ s left", line) for line in lines[:-1])
    return lines[-1]


def numbers_in(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", text)]


def on_cpus(count: int) -> Any:
    """So many devices of this process. Needs the fixture `example`."""
    return importlib.import_module("places").on_cpus(count)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Example:
    """Imports an example by its name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


# ---- data parallelism


def test_synchronous_towers_are_one_device(example: Example) -> None:
    """Four towers, two and one compute the same losses, step by step."""
    towers = example("synchronous_towers")
    one, one_accuracy = towers.train_towers(on_cpus(1), 60)
    assert one[0] > 2 and np.mean(one[-10:]) < 0.8
    for count in (2, 4):
        several, accuracy = towers.train_towers(on_cpus(count), 60)
        np.testing.assert_allclose(several, one, rtol=1e-5, atol=1e-5)
        assert accuracy == pytest.approx(one_accuracy, abs=0.002)


def test_synchronous_towers_end_with_the_weights_of_one_device(example: Example) -> None:
    """Weights, not only losses, agree to 1e-5."""
    towers = example("synchronous_towers")
    classifier = example("digit_classifier")
    digits = classifier.read_digits()
    found = []
    for count in (1, 4):
        with tf.Graph().as_default():
            graph = towers.build(on_cpus(count), 64, 0.2)
            with tf.Session(config=tf.ConfigProto(device_count={"CPU": count})) as session:
                session.run(tf.global_variables_initializer())
                for _, (images, labels) in zip(range(40), classifier.batches(digits, 64, seed=2)):
                    session.run(graph.train, {graph.images: images, graph.labels: labels})
                found.append(session.run(tf.trainable_variables()))
    for one, four in zip(*found, strict=True):
        np.testing.assert_allclose(four, one, atol=1e-5)


def test_towers_compute_and_variables_cross_once(example: Example) -> None:
    """Every tower's device multiplies, and receives each of the four variables exactly once a step."""
    towers = example("synchronous_towers")
    with tf.Graph().as_default():
        graph = towers.build(on_cpus(3), 6, 0.1)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
            session.run(tf.global_variables_initializer())
            metadata = tf.RunMetadata()
            session.run(
                [graph.loss, graph.train],
                {graph.images: np.zeros([6, 784]), graph.labels: np.zeros([6])},
                options=tf.RunOptions(output_partition_graphs=True),
                run_metadata=metadata,
            )
    parts = {part.node[0].device[-5:]: list(part.node) for part in metadata.partition_graphs}
    assert sorted(parts) == ["CPU:0", "CPU:1", "CPU:2"]
    for device in ("CPU:1", "CPU:2"):
        received = [node.attr["tensor_name"].s for node in parts[device] if node.op == "_Recv"]
        variables = [name for name in received if name.startswith(b"model/")]
        assert len(variables) == len(set(variables)) == 4
        assert sum("MatMul" in node.op for node in parts[device]) >= 2


def test_synchronous_towers_as_a_program(tmp_path: Path) -> None:
    line = summary_of("synchronous_towers.py", "--steps", "60", "--towers", "2", folder=tmp_path)
    match = re.fullmatch(r"2 towers: loss (.+), test accuracy (.+)%, 60 steps in .+ s", line)
    assert match and float(match[1]) < 1 and float(match[2]) > 80


def test_replicas_that_add_up_their_gradients_are_one_device(example: Example) -> None:
    """Losses and weights agree with those of one replica, which is plain training."""
    collective = example("collective_training")
    towers = example("synchronous_towers")
    losses, weights, accuracy = collective.train_here(1, 60)
    plain, plain_accuracy = towers.train_towers(on_cpus(1), 60)
    np.testing.assert_allclose(losses, plain, rtol=1e-5, atol=1e-5)
    assert accuracy == pytest.approx(plain_accuracy, abs=0.002)
    for count in (2, 4):
        others, found, _ = collective.train_here(count, 60)
        np.testing.assert_allclose(others, losses, rtol=1e-5, atol=1e-5)
        for one, several in zip(weights, found, strict=True):
            np.testing.assert_allclose(several, one, atol=1e-5)


def test_replicas_of_a_cluster_have_the_weights_of_one_process(tmp_path: Path) -> None:
    """Two processes without a parameter server; their weights are the same bit by bit."""
    program = str(EXAMPLES / "collective_training.py")
    arguments = ["--steps", "40", "--save"]
    summary_of("collective_training.py", "--replicas", "1", *arguments, "one.npz", folder=tmp_path)
    command = [sys.executable, "-m", "flowstone", "cluster", "up", "--workers", "2", program, *arguments]
    ran = subprocess.run(
        [*command, str(tmp_path / "task{task}.npz")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("2 replicas: loss") == 2
    first, second = (np.load(tmp_path / f"task{i}.npz") for i in range(2))
    one = np.load(tmp_path / "one.npz")
    for name in one:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], one[name], atol=1e-5)


def test_collective_training_as_a_program(tmp_path: Path) -> None:
    line = summary_of("collective_training.py", "--steps", "60", "--replicas", "2", folder=tmp_path)
    match = re.fullmatch(r"2 replicas: loss (.+), test accuracy (.+)%, 60 steps in .+ s", line)
    assert match and float(match[1]) < 1 and float(match[2]) > 80


def test_asynchronous_replicas_converge(example: Example) -> None:
    """All replicas contribute, and together they learn."""
    replicas = example("asynchronous_towers")
    updates, accuracy = replicas.train_replicas(3, 600)
    assert sum(updates) == 600
    assert min(updates) > 0
    assert accuracy > 0.85


def test_asynchronous_replicas_as_a_program(tmp_path: Path) -> None:
    line = summary_of("asynchronous_towers.py", "--steps", "300", "--replicas", "2", folder=tmp_path)
    match = re.fullmatch(r"2 replicas: test accuracy (.+)%, 300 updates \((\d+) (\d+)\) in .+ s", line)
    assert match and float(match[1]) > 75
    assert int(match[2]) + int(match[3]) == 300


def test_a_failing_replica_stops_the_others(example: Example) -> None:
    """Its error reaches the main thread; nobody goes on."""
    replicas = example("asynchronous_towers")
    classifier = example("digit_classifier")
    with tf.Graph().as_default():
        graph = replicas.build(on_cpus(2), 8, 0.1)
        failing = tf.Assert(tf.equal(graph[1].labels[0], -1), ["wrong"])
        graph[1] = graph[1]._replace(train=failing)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(tf.global_variables_initializer())
            clients = replicas.Clients(session, graph, classifier.read_digits(), 1_000_000, 8)
            with pytest.raises(tf.errors.InvalidArgumentError, match="wrong"):
                clients.run(lambda done, **figures: None)
    assert sum(clients.updates) < 1_000_000


# ---- model parallelism and concurrent steps


def test_the_model_parallel_lstm_is_one_device(example: Example) -> None:
    """Layers on two or three devices compute what one device does."""
    lstm = example("model_parallel_lstm")
    one, choices = lstm.train_layers(3, on_cpus(1), 12, units=16, length=8)
    assert one[0] == pytest.approx(np.log(choices), abs=0.1)
    assert one[-1] < one[0] - 0.2
    for devices in (2, 3):
        several, _ = lstm.train_layers(3, on_cpus(devices), 12, units=16, length=8)
        np.testing.assert_allclose(several, one, rtol=1e-5)


def test_each_layer_is_on_its_device(example: Example) -> None:
    """Cells' variables and products, their gradients too."""
    lstm = example("model_parallel_lstm")
    with tf.Graph().as_default() as graph:
        lstm.build(30, layers=3, devices=on_cpus(3).devices, units=8, length=4)
        products = [op for op in graph.get_operations() if op.type == "MatMul" and "/cell_" in op.name]
    for layer in range(3):
        places = {op.device for op in products if f"/cell_{layer}/" in op.name}
        assert places == {f"/device:CPU:{layer}"}


def test_the_model_parallel_lstm_as_a_program(tmp_path: Path) -> None:
    line = summary_of("model_parallel_lstm.py", "--steps", "20", "--units", "24", folder=tmp_path)
    layers, devices, loss, chance, *_ = numbers_in(line)
    assert (layers, devices) == (2, 2)
    assert loss < chance


def test_concurrent_steps_do_all_steps_and_learn(example: Example) -> None:
    """As many updates as were asked for, from whichever client; the model learns."""
    concurrent = example("concurrent_steps")
    count, lock = [0], threading.Lock()

    def step() -> None:
        with lock:
            count[0] += 1

    concurrent.run_clients(step, clients=4, steps=100, show=lambda done, **figures: None)
    assert count == [100]
    assert concurrent.train_with(3, 150, on_cpus(1)).accuracy > 0.8


def test_concurrent_steps_as_a_program(tmp_path: Path) -> None:
    line = summary_of("concurrent_steps.py", "--steps", "40", "--clients", "2", folder=tmp_path)
    assert re.fullmatch(r"40 steps: 1 client .+ s, 2 clients .+ s, .+ times as fast, test accuracy .+%", line)


# ---- text


def test_words_are_numbered_by_frequency(example: Example) -> None:
    corpus = example("corpus")
    words = corpus.read_words(200)
    counts = np.bincount(words.ids, minlength=200)
    assert len(words.vocabulary) == 200
    assert words.vocabulary[:4] == ["<unknown>", ",", "the", "and"]
    assert (np.diff(counts[1:]) <= 0).all()
    assert [words.vocabulary[k] for k in words.ids[:2]] == ["in", "the"]


def test_skip_gram_brings_its_loss_down(tmp_path: Path) -> None:
    line = summary_of("skip_gram.py", "--steps", "600", "--vocabulary", "1000", folder=tmp_path)
    vocabulary, steps, first, last = numbers_in(line)
    assert (vocabulary, steps) == (1000, 600)
    assert last < 0.7 * first


def test_the_language_model_beats_word_frequencies(tmp_path: Path) -> None:
    """After a few steps already; by frequency alone the perplexity is 87 for these words."""
    line = summary_of(
        "language_model.py", "--steps", "160", "--vocabulary", "500", "--units", "64", folder=tmp_path
    )
    perplexity, vocabulary, steps, _ = numbers_in(line)
    assert (vocabulary, steps) == (500, 160)
    assert perplexity < 75
