"""Dumped runs: what is in their files, and that TensorFlow's names and paths are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone import debugger as tf_debug


def a_graph() -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.Variable([1.0, 2.0], name="w")
    y = tf.log(x * w, name="scope/y")
    return x, w, tf.reduce_sum(y, name="z")


def only_run(root: Path) -> tf_debug.DebugDumpDir:
    (folder,) = os.listdir(root)
    return tf_debug.DebugDumpDir(str(root / folder))


def test_a_dumping_session(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, _, z = a_graph()
        session.run(tf.global_variables_initializer())
        wrapper = tf_debug.DumpingDebugWrapperSession(session, str(tmp_path / "runs"))
        assert wrapper.run(z, {x: [1.0, 0.0]}) == -np.inf
        assert wrapper.run_call_count == 1 and wrapper.graph is graph and wrapper.session is session
    dump = only_run(tmp_path / "runs")
    names = {datum.node_name for datum in dump.dumped_tensor_data}
    assert names == {"x", "w", "w/read", "mul", "scope/y", "Const", "z"}
    assert dump.get_tensors("scope/y", 0, "DebugIdentity")[0].tolist() == [0.0, -np.inf]
    assert [datum.tensor_name for datum in dump.find(tf_debug.has_inf_or_nan)] == ["scope/y:0", "z:0"]
    assert [datum.tensor_name for datum in dump.find(tf_debug.has_inf_or_nan, first_n=1)] == ["scope/y:0"]
    assert dump.find(tf_debug.has_inf_or_nan, exclude_node_names="scope|z") == []
    assert dump.node_inputs("scope/y") == ["mul"] and dump.node_recipients("scope/y") == ["z"]
    assert dump.node_op_type("scope/y") == "Log" and not dump.node_exists("other")
    assert dump.transitive_inputs("scope/y") == ["mul", "w", "w/read", "x"]
    assert dump.debug_watch_keys("z") == ["z:0:DebugIdentity"]
    assert dump.devices() == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    assert "'z:0'" in (dump.run_fetches_info or "") and "'x:0'" in (dump.run_feed_keys_info or "")
    assert dump.get_rel_timestamps("z", 0, "DebugIdentity")[0] >= 0
    assert dump.get_dump_sizes_bytes("z", 0, "DebugIdentity")[0] > 0
    dump.set_python_graph(graph)
    assert any(frame[0] == __file__ for frame in dump.node_traceback("z:0"))
    with pytest.raises(ValueError, match="does not exist in the debug dump"):
        dump.get_tensors("z", 1, "DebugIdentity")
    with pytest.raises(ValueError, match="not found in partition graphs"):
        dump.node_op_type("other")


def test_what_is_watched(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, _, z = a_graph()
        session.run(tf.global_variables_initializer())

        def watch(fetches: Any, feeds: Any) -> tf_debug.WatchOptions:
            assert fetches is z and list(feeds) == [x]
            return tf_debug.WatchOptions(["DebugNanCount"], "scope|z", "Log|Sum", "float32")

        wrapper = tf_debug.DumpingDebugWrapperSession(session, str(tmp_path / "runs"), watch)
        wrapper.run(z, {x: [-1.0, 1.0]})
    counts = {
        each.node_name: each.get_tensor().tolist() for each in only_run(tmp_path / "runs").dumped_tensor_data
    }
    assert counts == {"scope/y": [1], "z": [1]}


def test_options_of_a_run(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, w, z = a_graph()
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions()
        tf_debug.watch_graph_with_blacklists(
            options,
            graph,
            debug_urls=f"file://{tmp_path}",
            node_name_regex_blacklist="x|w|Const",
            op_type_regex_blacklist="Mul",
        )
        tf_debug.add_debug_tensor_watch(
            options,
            "x",
            0,
            "DebugNumericSummary(lower_bound=0.5; mute_if_healthy=true)",
            f"file://{tmp_path}",
        )
        result = session.run([z, tf.assign(w, [3.0, 4.0])], {x: [1.0, 0.0]}, options=options)
        assert result[1].tolist() == [3.0, 4.0]
        dump = tf_debug.DebugDumpDir(str(tmp_path))
        assert sorted(each.watch_key for each in dump.dumped_tensor_data) == [
            "scope/y:0:DebugIdentity",
            "x:0:DebugNumericSummary",
            "z:0:DebugIdentity",
        ]
        assert not dump.loaded_partition_graphs()
        bad = tf.RunOptions()
        tf_debug.add_debug_tensor_watch(bad, "x", 0, "DebugNothing", f"file://{tmp_path}")
        with pytest.raises(tf.errors.InvalidArgumentError, match="no debug op 'DebugNothing'"):
            session.run(z, {x: [1.0, 0.0]}, options=bad)
        assert session.run(z, {x: [1.0, 1.0]}) == pytest.approx(np.log(12.0), rel=1e-5)


def test_a_run_that_fails_is_dumped_so_far(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        doubled = tf.multiply(x, 2.0, name="doubled")
        checked = tf.check_numerics(doubled, "not finite", name="checked")
        wrapper = tf_debug.DumpingDebugWrapperSession(session, str(tmp_path / "runs"))
        with pytest.raises(tf.errors.InvalidArgumentError, match="not finite"):
            wrapper.run(checked, {x: np.inf})
    dump = only_run(tmp_path / "runs")
    assert dump.get_tensors("doubled", 0, "DebugIdentity") == [np.inf]
    assert not dump.debug_watch_keys("checked")


def test_loops_and_branches_run_unwatched(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        total = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.constant(0)])
        chosen = tf.cond(total > 3, lambda: total * 2, lambda: total)
        wrapper = tf_debug.DumpingDebugWrapperSession(session, str(tmp_path / "runs"))
        assert wrapper.run(chosen) == 10
    assert only_run(tmp_path / "runs").size > 0


def test_a_wrapper_is_a_session(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, name="x")
        wrapper = tf_debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path / "runs"))
        with wrapper as entered:
            assert entered is wrapper and (x * 2).eval({x: 3.0}) == 6.0
            assert wrapper.make_callable(x + 1, [x])(1.0) == 2.0
            assert wrapper.run_call_count == 2
            with pytest.raises(ValueError, match="should_stop"):
                wrapper.should_stop()
        with pytest.raises(RuntimeError):
            wrapper.run(x, {x: 1.0})
    with pytest.raises(TypeError, match="Expected type session"):
        tf_debug.DumpingDebugWrapperSession(3, str(tmp_path / "more"))
    with pytest.raises(ValueError, match="non-empty directory"):
        tf_debug.DumpingDebugWrapperSession(tf.Session(graph=tf.Graph()), str(tmp_path / "runs"))
    with pytest.raises(OSError, match="does not exist"):
        tf_debug.DebugDumpDir(str(tmp_path / "nowhere"))


def test_graphs_without_a_debuggers_nodes() -> None:
    graph = tf.GraphDef()
    graph.node.add(name="a", op="Const")
    graph.node.add(name="__copy_a_0", op="Copy", input=["a"])
    graph.node.add(name="__dbg_a:0_0_DebugIdentity", op="DebugIdentity", input=["__copy_a_0"])
    graph.node.add(name="b", op="Neg", input=["__copy_a_0", "^a"])
    plain = tf_debug.reconstruct_non_debug_graph_def(graph)
    assert [(node.name, list(node.input)) for node in plain.node] == [("a", []), ("b", ["a", "^a"])]


def test_debuggers_servers_are_refused() -> None:
    for name in ("GrpcDebugWrapperSession", "TensorBoardDebugHook"):
        with pytest.raises(NotImplementedError, match="LocalCLIDebugWrapperSession"):
            getattr(tf_debug, name)("localhost:6064")


def test_a_watched_run_is_traced_and_returns_its_graphs(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, _, z = a_graph()
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(output_partition_graphs=True, trace_level=tf.RunOptions.FULL_TRACE)
        tf_debug.watch_graph(options, graph, debug_urls=f"file://{tmp_path / 'run'}")
        metadata = tf.RunMetadata()
        assert session.run(z, {x: [1.0, 0.5]}, options, metadata) == 0
    dump = tf_debug.DebugDumpDir(str(tmp_path / "run"), partition_graphs=metadata.partition_graphs)
    assert dump.get_tensors("z", 0, "DebugIdentity")[0] == 0
    assert dump.loaded_partition_graphs()
    assert len(metadata.partition_graphs) == 1 and metadata.step_stats.dev_stats[0].node_stats
