"""Checkpoints of objects: what they hold, what TensorFlow 2.21 wrote, and which are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.training.checkpoints import object_checkpoint

WRITTEN = Path(__file__).parents[1] / "golden" / "checkpoints" / "objects"


class Model(tf.Module):  # type: ignore[misc]
    inner: Any
    several: Any


def program() -> tuple[Any, Any, list[Any]]:
    """(the Checkpoint, a training step, variables in order): the program that WRITTEN comes from."""
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    r = tf.get_variable("rv", initializer=3, use_resource=True)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(v * v))
    model = Model()
    model.inner, model.several = r, [v]
    checkpoint = tf.train.Checkpoint(v=v, model=model, optimizer=optimizer)
    return checkpoint, step, [v, r, *optimizer.variables()]


def started(session: Any) -> tuple[Any, Any, list[Any]]:
    made = program()
    session.run(tf.global_variables_initializer())
    return made


def test_what_tensorflow_wrote_is_restored() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, _, variables = started(session)
        checkpoint.restore(str(WRITTEN)).assert_consumed().run_restore_ops(session)
        v, r, *others = session.run(variables)
        np.testing.assert_allclose(v, [0.9, 1.9], rtol=1e-6)
        assert r == 3
        np.testing.assert_allclose(others[0], 0.81, rtol=1e-6)
        assert session.run(checkpoint.save_counter) == 1


def test_keys_are_tensorflows(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        path = started(session)[0].save(str(tmp_path / "ck"), session)
    assert path == str(tmp_path / "ck-1")
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert tf.train.list_variables(path) == tf.train.list_variables(str(WRITTEN))


def test_saved_and_restored_in_another_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, step, variables = started(session)
        session.run([step])
        path = checkpoint.write(str(tmp_path / "ck"), session)
        expected = session.run(variables)
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, _, variables = program()
        checkpoint.restore(path).initialize_or_restore(session)
        for found, wanted in zip(session.run(variables), expected):
            np.testing.assert_array_equal(found, wanted)


def test_by_names_where_a_saver_wrote(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, _, variables = started(session)
        variables[0].load([7.0, 8.0], session)
        path = tf.train.Saver().save(session, str(tmp_path / "named"))
        session.run(tf.global_variables_initializer())
        checkpoint.restore(path).assert_existing_objects_matched().run_restore_ops(session)
        np.testing.assert_array_equal(session.run(variables[0]), [7.0, 8.0])


def test_what_does_not_match_is_said(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.Variable(1.0), tf.Variable(2.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(x=x).save(str(tmp_path / "ck"), session)
        more = tf.train.Checkpoint(x=x, y=y).restore(path)
        with pytest.raises(AssertionError, match=r"Some Python objects were not bound .*y/"):
            more.assert_consumed()
        more.assert_nontrivial_match().expect_partial().initialize_or_restore(session)
        with pytest.raises(AssertionError, match="matches"):
            tf.train.Checkpoint(z=y).restore(path).assert_nontrivial_match()
        path = tf.train.Checkpoint(x=x, y=y).save(str(tmp_path / "both"), session)
        with pytest.raises(AssertionError, match=r"Unresolved .*y/"):
            tf.train.Checkpoint(x=x).restore(path).assert_consumed()


@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_made_after_restoring_is_restored_too(is_there: bool) -> None:
    """As in loops that restore first, and make a model's weights and an optimiser's slots with the loss."""
    with tf.Graph().as_default(), tf.Session() as session:
        model, optimizer = Model(), tf.train.AdamOptimizer(0.1)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        restored = checkpoint.restore(str(WRITTEN) if is_there else None)
        v = tf.get_variable("v", initializer=[5.0, 6.0])
        model.inner, model.several = tf.get_variable("rv", initializer=4, use_resource=True), [v]
        step = optimizer.minimize(tf.reduce_sum(v * v))
        restored.initialize_or_restore(session)
        beta, _ = optimizer._get_beta_accumulators()
        expected = ([0.9, 1.9], 3, 0.81) if is_there else ([5.0, 6.0], 4, 0.9)
        for value, wanted in zip(session.run([v, model.inner, beta]), expected):
            np.testing.assert_allclose(value, wanted, rtol=1e-6)
        if is_there:
            restored.assert_existing_objects_matched()
            np.testing.assert_allclose(session.run(optimizer.get_slot(v, "m")), [0.2, 0.4], rtol=1e-6)
        session.run(step)


def test_no_checkpoint_initialises() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable(4.0)
        status = tf.train.Checkpoint(x=x).restore(None)
        for refused in (status.assert_consumed, status.run_restore_ops, status.assert_nontrivial_match,
                        status.assert_existing_objects_matched):  # fmt: skip
            with pytest.raises(AssertionError, match="No checkpoint"):
                refused()
        status.expect_partial().initialize_or_restore(session)
        assert session.run(x) == 4


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_checkpoint, "further_sessions", [])  # Keras' own
    with pytest.raises(ValueError, match="trackable"):
        tf.train.Checkpoint(x=3)
    with tf.Graph().as_default():
        checkpoint = tf.train.Checkpoint(x=tf.Variable(1.0))
        with pytest.raises(ValueError, match="session"):
            checkpoint.save(str(tmp_path / "ck"))
        with pytest.raises(tf.errors.NotFoundError):
            checkpoint.restore(str(tmp_path / "none"))


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    with tf.Graph().as_default(), tf.Session():
        x = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(x=x)
        called = []
        kept = tf.train.CheckpointManager(checkpoint, folder, 2, init_fn=lambda: called.append(1))
        assert (kept.restore_or_initialize(), kept.latest_checkpoint, called) == (None, None, [1])
        x.initializer.run()
        saved = [kept.save() for _ in range(3)]
        assert [os.path.basename(each) for each in saved] == ["ckpt-1", "ckpt-2", "ckpt-3"]
        assert kept.checkpoints == saved[1:]
        assert not tf.train.checkpoint_exists(saved[0])
        assert kept.save(checkpoint_number=9) == os.path.join(folder, "ckpt-9")
        x.load(5.0)
        again = tf.train.CheckpointManager(checkpoint, folder, None)
        assert again.checkpoints == kept.checkpoints
        assert (again.directory, again.checkpoint, again.checkpoint_interval) == (folder, checkpoint, None)
        assert again.restore_or_initialize() == again.latest_checkpoint == os.path.join(folder, "ckpt-9")
        assert x.eval() == 1


def test_an_interval_of_steps(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session():
        step = tf.Variable(0)
        step.initializer.run()
        kept = tf.train.CheckpointManager(
            tf.train.Checkpoint(step=step), str(tmp_path), 5, step_counter=step, checkpoint_interval=10
        )
        assert kept.save()
        step.load(9)
        assert kept.save() is None
        assert kept.save(check_interval=False)
        step.load(19)
        assert kept.save()


@pytest.mark.parametrize(
    ("how", "message"),
    [({"max_to_keep": 0}, "positive"), ({"max_to_keep": 1, "checkpoint_interval": 3}, "step_counter")],
)
def test_bad_arguments_of_the_keeper(how: dict[str, Any], message: str, tmp_path: Path) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), **how)
