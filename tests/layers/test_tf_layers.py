"""Layers of `tf.layers` give TensorFlow 1.15's graphs, values, gradients and training steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.layers import layer_programs
from tests.layers.layer_programs import DIFFERENCES, GRAPHS_ONLY, PROGRAMS, graph_lines, run

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "layers"
VALUES = np.load(GOLDEN / "tf_layers.npz")
SECTIONS = (GOLDEN / "tf_layers.txt").read_text(encoding="utf-8").split("# ")[1:]
LINES = {section.split("\n")[0]: section.strip().split("\n")[1:] for section in SECTIONS}


def test_every_program_has_its_goldens() -> None:
    assert list(LINES) == list(PROGRAMS)
    assert list(VALUES.files) == [name for name in PROGRAMS if name not in GRAPHS_ONLY]
    assert set(DIFFERENCES) <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_variables_collections_and_shapes(name: str) -> None:
    found, expected = (
        [line for line in lines if not line.startswith("node ")]
        for lines in (graph_lines(tf, name), LINES[name])
    )
    assert found == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes(name: str) -> None:
    found, expected = (
        {line[5:] for line in lines if line.startswith("node ")}
        for lines in (graph_lines(tf, name), LINES[name])
    )
    meant = DIFFERENCES.get(name, {})
    differing = {line: [node for node in meant if is_below(line, node)] for line in expected ^ found}
    assert sorted(line for line, nodes in differing.items() if not nodes) == []
    assert {node for nodes in differing.values() for node in nodes} == set(meant), "a difference is gone"


def is_below(line: str, node: str) -> bool:
    return f"{line.split()[0]}/".startswith(f"{node}/")


@pytest.mark.parametrize("name", VALUES.files)
def test_values_gradients_and_training(name: str) -> None:
    expected, start = VALUES[name], 0
    found = run(tf, name)
    assert sum(value.size for value in found.values()) == expected.size
    tolerance = 2e-3 if "float16" in name else 2e-5
    for key, value in found.items():
        golden = expected[start : start + value.size].reshape(value.shape)
        start += value.size
        np.testing.assert_allclose(value, golden, rtol=tolerance, atol=tolerance, err_msg=key)


@pytest.mark.parametrize("name", GRAPHS_ONLY)
def test_channels_first_gives_what_channels_last_gives(name: str) -> None:
    """The same layer on the same inputs, with channels moved to the other end."""
    with tf.Graph().as_default() as graph:
        y = PROGRAMS[name](tf)
        x = graph.get_tensor_by_name("x:0")
        expected = session_values(x, y)
        values = expected[0]
    with tf.Graph().as_default():
        last = np.moveaxis(values, 1, -1)
        build = layer_programs.PROGRAMS[name]
        x, y = as_channels_last(build, last)
        found = session_values(x, y)
    np.testing.assert_allclose(np.moveaxis(found[1], -1, 1), expected[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.moveaxis(found[2], -1, 1), expected[2], rtol=1e-5, atol=1e-5)


def session_values(x: tf.Tensor, y: tf.Tensor) -> list[np.ndarray]:
    """The input, the output and the gradient of the sum of its squares by the input."""
    (dx,) = tf.gradients(tf.reduce_sum(y * y), [x])
    with tf.Session() as session:
        for variable in tf.global_variables():
            variable.load(layer_programs.value_of(variable), session)
        values: list[np.ndarray] = session.run([x, y, dx])
        return values


class _LayersWithChannelsLast:
    """`tf.layers`, with every function told that channels come last."""

    def __getattr__(self, name: str) -> object:
        function = getattr(tf.layers, name)

        def call(x: tf.Tensor, *arguments: object, **keywords: object) -> tf.Tensor:
            positional = ["channels_last" if a == "channels_first" else a for a in arguments]
            if "data_format" in keywords:
                keywords["data_format"] = "channels_last"
            if "axis" in keywords:
                keywords["axis"] = -1
            result: tf.Tensor = function(x, *positional, **keywords)
            return result

        return call


class _ChannelsLast:
    """`tf` for programs whose channels come first: their input is `values`, and layers' channels come
    last."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self.layers = values, _LayersWithChannelsLast()

    def placeholder_with_default(self, values: object, shape: object, name: str) -> tf.Tensor:
        return tf.placeholder_with_default(self._values, [None, *self._values.shape[1:]], name=name)

    def __getattr__(self, name: str) -> object:
        return getattr(tf, name)


def as_channels_last(build: layer_programs.Build, values: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
    y = build(_ChannelsLast(values))
    return tf.get_default_graph().get_tensor_by_name("x:0"), y
