"""Learning-rate schedules, moving averages and the global step give TensorFlow's values and nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.training import trajectories

import flowstone as tf
import flowstone.train

GOLDEN = Path(__file__).parents[1] / "golden" / "training"
RATES = np.load(GOLDEN / "schedules.npz")
AVERAGES = np.load(GOLDEN / "averages.npz")


def golden_nodes(name: str) -> dict[str, list[str]]:
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


SCHEDULE_NODES, AVERAGE_NODES = golden_nodes("schedules"), golden_nodes("averages")


@pytest.mark.parametrize("name", trajectories.schedules(tf))
def test_schedule(name: str) -> None:
    rates, nodes = trajectories.schedule_values(tf, name)
    np.testing.assert_allclose(rates, RATES[name], rtol=3e-6, atol=1e-7)
    assert sorted(nodes) == sorted(SCHEDULE_NODES[name])


@pytest.mark.parametrize("kind", trajectories.KINDS)
@pytest.mark.parametrize("name", trajectories.AVERAGES)
def test_average(name: str, kind: str) -> None:
    values, nodes = trajectories.average_values(tf, name, kind)
    prefix = f"{name}\\{kind}|"
    golden = {key.removeprefix(prefix): AVERAGES[key] for key in AVERAGES.files if key.startswith(prefix)}
    assert {variable.replace("/", "\\") for variable in values[0]} == set(golden)
    for variable, expected in golden.items():
        found = np.stack([step[variable.replace("\\", "/")] for step in values])
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=variable)
    assert nodes == AVERAGE_NODES[f"{name}/{kind}"]


def test_averages_by_name() -> None:
    with tf.Graph().as_default():
        v, w = tf.get_variable("v", [2]), tf.get_variable("w", [2])
        averages = tf.train.ExponentialMovingAverage(0.9)
        assert averages.average(v) is None and averages.average_name(v) == "v/ExponentialMovingAverage"
        averages.apply([v])
        assert averages.average(v).op.name == averages.average_name(v) == "v/ExponentialMovingAverage"
        restored = averages.variables_to_restore()
        assert restored == {"v/ExponentialMovingAverage": v, "w/ExponentialMovingAverage": w}
        with pytest.raises(TypeError, match="must be half, float, or double: Placeholder:0"):
            averages.apply([tf.placeholder(tf.int32, [2])])


def test_global_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert tf.train.get_global_step() is None
        step = tf.train.create_global_step()
        assert step.op.name == "global_step" and step.dtype.base_dtype == tf.int64
        assert tf.train.get_global_step() is step and tf.train.get_or_create_global_step() is step
        assert (
            tf.get_default_graph().get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
            and tf.trainable_variables() == []
        )
        with pytest.raises(ValueError, match='"global_step" already exists'):
            tf.train.create_global_step()
        session.run(step.assign(7))
        assert tf.train.global_step(session, step) == tf.train.global_step(session, "global_step:0") == 7


def test_a_global_step_must_count() -> None:
    with tf.Graph().as_default():
        tf.Variable(0.0, name="global_step")
        with pytest.raises(TypeError, match="does not have integer type"):
            tf.train.get_global_step()
        with pytest.raises(TypeError, match="is not scalar"):
            tf.train.assert_global_step(tf.Variable([0], trainable=False))
        with pytest.raises(TypeError, match="must be a Variable or Tensor"):
            tf.train.assert_global_step(3)


def test_piecewise_constant_checks_its_types() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.int32, [])
        with pytest.raises(ValueError, match="length of boundaries"):
            tf.train.piecewise_constant(x, [1, 2], [1, 2])
        with pytest.raises(ValueError, match="same dtype as x"):
            tf.train.piecewise_constant(x, [1.0], [1, 2])
        with pytest.raises(ValueError, match="all with the same dtype"):
            tf.train.piecewise_constant(x, [1], [1.0, 2])
        with pytest.raises(ValueError, match="None values"):
            tf.train.exponential_decay(0.1, None, 1, 1.0)
