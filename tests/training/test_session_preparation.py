"""`SessionManager` restores or initialises; what a training loses by mistake is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_prepare_restores_else_initialises(tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=1.0)
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    called = []
    session = manager.prepare_session(
        "", v.initializer, saver, tmp_path, init_fn=lambda session: called.append(session.run(v))
    )
    assert called == [1.0]
    session.run(v.assign(2.0))
    path = saver.save(session, tmp_path / "m", global_step=3)
    for place in ({"checkpoint_dir": tmp_path}, {"checkpoint_filename_with_path": path}):
        other = manager.prepare_session("", v.initializer, saver, init_fn=called.append, **place)
        assert other.run(v) == 2.0
        recovered, is_loaded = manager.recover_session("", saver, **place)
        assert is_loaded
        assert recovered.run(v) == 2.0
    assert called == [1.0]
    assert saver.last_checkpoints == [path]


def test_mistakes(tmp_path: Path) -> None:
    tf.get_variable("v", initializer=1.0)
    saver, nothing = tf.train.Saver(), tf.no_op()
    ready = tf.report_uninitialized_variables()
    with pytest.raises(ValueError, match="must also pass a local_init_op"):
        tf.train.SessionManager(ready_for_local_init_op=ready)
    with pytest.raises(RuntimeError, match="no init_op or init_fn"):
        tf.train.SessionManager().prepare_session("")
    with pytest.raises(ValueError, match="both checkpoint_dir and"):
        tf.train.SessionManager().recover_session("", saver, "a", "b")
    with pytest.raises(RuntimeError, match=r"ready\.  .*Variables not initialized: v"):
        tf.train.SessionManager(ready_op=ready).prepare_session("", nothing)
    with pytest.raises(RuntimeError, match=r"ready for local_init.*not initialized: v"):
        tf.train.SessionManager(nothing, ready_for_local_init_op=ready).prepare_session("", nothing)
    session, is_loaded = tf.train.SessionManager().recover_session(
        "", saver, tmp_path, wait_for_checkpoint=True, max_wait_secs=0
    )
    assert not is_loaded
    session.close()


def test_a_checkpoint_that_is_named_and_gone_is_an_error(tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=1.0)
    tf.train.update_checkpoint_state(tmp_path, str(tmp_path / "gone"))
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        tf.train.SessionManager().prepare_session("", v.initializer, tf.train.Saver(), tmp_path)
