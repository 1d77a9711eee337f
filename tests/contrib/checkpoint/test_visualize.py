"""What a checkpoint says of its objects; the drawing is TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstone as tf

checkpoint = tf.contrib.checkpoint
DRAWING = """digraph {
N_0 [shape=point label="" width=.25]
N_0 -> N_1 [label="optimizer"]
N_0 -> N_2 [label="v"]
N_0 -> N_3 [label="save_counter"]
N_1 [shape=point label="" width=.25 color=red,tooltip="Optimizer"]
N_1 -> N_4 [label="momentum" style=dotted]
N_2 -> N_4 [style=dotted]
N_2 [shape=point label="" color=blue width=.25 tooltip="Variable v shape=[2] float32"]
N_3 [shape=point label="" color=blue width=.25 tooltip="Variable save_counter shape=[] int64"]
N_4 [shape=point label="" color=orange width=.25 tooltip="Slot variable v/Momentum shape=[2] float32"]
}
"""


def test_objects_of_a_checkpoint(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0], name="v")
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(tf.reduce_sum(v))
        saver = tf.train.Checkpoint(optimizer=optimizer, v=v)
        assert checkpoint.list_objects(saver) == [saver, optimizer, v, optimizer.get_slot(v, "momentum")]
        session.run(tf.global_variables_initializer())
        path = saver.save(str(tmp_path / "model"), session=session)
        assert checkpoint.list_objects(saver)[3] is saver.save_counter
        named = tf.train.Saver([v]).save(session, str(tmp_path / "named"))
    assert checkpoint.dot_graph_from_checkpoint(path) == DRAWING
    message = checkpoint.object_metadata(path)
    assert isinstance(message, checkpoint.CheckpointableObjectGraph)
    assert [child.local_name for child in message.nodes[0].children] == ["optimizer", "v", "save_counter"]
    with pytest.raises(ValueError, match="does not appear to be object-based"):
        checkpoint.object_metadata(named)
