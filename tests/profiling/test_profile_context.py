"""`ProfileContext`: which steps of sessions are traced, dumped and profiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flowstone as tf
from flowstone.client.session import BaseSession
from flowstone.framework.types.tensor_proto import messages


def test_steps_by_their_numbers(tmp_path: Path) -> None:
    run = BaseSession.run
    options = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.time_and_memory())
    to_file = options.with_file_output(str(tmp_path / "out")).build()
    with tf.Graph().as_default() as graph:
        product = tf.matmul(tf.ones([3, 3]), tf.ones([3, 3]), name="product")
        profiles = tmp_path / "profiles"
        with tf.contrib.tfprof.ProfileContext(str(profiles), trace_steps=[2, 4], dump_steps=[4]) as context:
            context.add_auto_profiling("op", to_file, [3, 5])
            with tf.Session() as session:
                for _ in range(7):
                    assert session.run(product)[0, 0] == 3
                context.dump_next_step()
                session.run(product)
            views = context.get_profiles("op")
            assert len(views) == 2 and context.profiler._graph is graph
            assert sorted(context.profiler._steps) == [2, 4, 7]
            with pytest.raises(ValueError, match="No autoprofiler for command: scope, was run"):
                context.get_profiles("scope")
            with pytest.raises(ValueError, match="There is no view 'all'"):
                context.add_auto_profiling("all", to_file, [1])
    assert sorted(os.listdir(profiles)) == ["profile_4", "profile_7"]
    profile = messages("tfprof_log_pb2").ProfileProto.FromString((profiles / "profile_4").read_bytes())
    (node,) = [each for each in profile.nodes.values() if each.name == "product"]
    assert (node.op, node.float_ops, sorted(node.execs)) == ("MatMul", 54, [2, 4])
    assert node.execs[2].run_count == 1 and list(profile.steps) == [2, 4] and profile.has_trace
    files = {profile.id_to_string[trace.file_id] for trace in node.trace.traces}
    assert __file__ in files and node.output_shapes[0].int64_values == [3, 3]
    assert BaseSession.run is run


def test_steps_of_its_own_choice(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.constant(1)
        with tf.contrib.tfprof.ProfileContext(str(tmp_path)) as context:
            for _ in range(25):
                session.run(one)
            assert sorted(context.profiler._steps) == [10, 20]
    assert sorted(os.listdir(tmp_path)) == ["profile_10", "profile_20"]


def test_a_context_that_is_off(tmp_path: Path) -> None:
    run = BaseSession.run
    with tf.contrib.tfprof.ProfileContext(str(tmp_path), [0], [0], enabled=False):
        assert BaseSession.run is run
    with pytest.raises(ValueError, match="Must have a directory"):
        tf.contrib.tfprof.ProfileContext(None)
