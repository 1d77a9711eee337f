"""Where all runs shall compute alike, the first ones too."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstone as tf
from flowstone.framework import flags
from seeded_programs import X, recurrent


def test_training_that_goes_on_from_a_checkpoint_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, set_profile
) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "DETERMINISTIC", False)  # and what it was afterwards
    tf.config.experimental.enable_op_determinism()
    set_profile(cluster_much=0)
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        train, loss, _, x = recurrent()
        saver = tf.train.Saver()
        losses = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for step in range(8):
                if step == 4:
                    saver.save(session, str(tmp_path / "model"))
                losses.append(session.run([train, loss], {x: X})[1])
        with tf.Session() as session:
            saver.restore(session, str(tmp_path / "model"))
            assert [session.run([train, loss], {x: X})[1] for _ in range(4)] == losses[4:]
