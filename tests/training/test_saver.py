"""Savers: what they write and read, with TensorFlow 1.15 in both directions, and how they keep house."""

from __future__ import annotations

import json
import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import forked
import saver_programs
from flowstone.compat.module_paths import register
from flowstone.framework import errors
from flowstone.framework.names.alias_modules import alias_module
from flowstone.training.checkpoints.saver_graph import SaverGraph

register()

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "saver"
READ = json.loads((GOLDEN / "read.json").read_text())
NAMES = json.loads((GOLDEN / "names.json").read_text())


# ---- with TensorFlow


@pytest.mark.parametrize("name", saver_programs.SAVERS)
def test_what_tensorflow_saved_is_restored(name: str) -> None:
    assert saver_programs.restored(tf, name, str(GOLDEN / name)) == READ[name]


@pytest.mark.parametrize("name", saver_programs.SAVERS)
def test_what_is_saved_is_restored(name: str, tmp_path: Path) -> None:
    """`READ` is what TensorFlow read of such a checkpoint."""
    saver_programs.save(tf, name, str(tmp_path))
    assert saver_programs.restored(tf, name, str(tmp_path)) == READ[name]


@pytest.mark.parametrize("name", saver_programs.SAVERS)
def test_operations_have_tensorflows_names(name: str) -> None:
    assert saver_programs.names(tf, name) == NAMES[name]


@pytest.mark.parametrize("name", ["plain", "sharded", "renamed"])
def test_tensorflows_graphs_are_imported_with_their_savers(name: str) -> None:
    saver = tf.train.import_meta_graph(str(GOLDEN / name / "model-3.meta"))
    with tf.Session() as session:
        saver.restore(session, str(GOLDEN / name / "model-3"))
        assert session.run(tf.get_collection("result")) == [66]


def test_graphs_are_imported_into_a_scope(tmp_path: Path) -> None:
    path = saver_programs.save(tf, "plain", str(tmp_path))
    saver = tf.train.import_meta_graph(path + ".meta", import_scope="inner")
    assert "inner/scope/r:0" in [variable.name for variable in tf.global_variables()]
    assert {variable.name for variable in tf.trainable_variables()} < {
        variable.name for variable in tf.global_variables()
    }
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run("inner/w:0").tolist() == saver_programs.VALUES.tolist()


# ---- which checkpoints are kept


def saved_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_last_checkpoints_are_kept(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [saver.save(session, str(tmp_path / "m"), global_step=step) for step in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert saved_files(tmp_path) == sorted(
        ["checkpoint", *(f"m-{n}.{end}" for n in (2, 3) for end in ("data-00000-of-00001", "index", "meta"))]
    )
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[3]
    assert list(state.all_model_checkpoint_paths) == paths[2:]
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[3]
    times = tf.train.get_checkpoint_mtimes(paths)
    assert len(times) == 2 and times[0] <= times[1]


def test_one_checkpoint_for_each_period_is_kept_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(6):
            saver.save(session, str(tmp_path / "m"), global_step=step, write_meta_graph=False)
            now[0] += 2000
    kept = {re.match(r"m-(\d)", name).group(1) for name in saved_files(tmp_path) if name != "checkpoint"}  # type: ignore[union-attr]
    assert kept == {"2", "4", "5"}


def test_a_new_saver_goes_on_keeping_house(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    first, second = tf.train.Saver(max_to_keep=2), tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [first.save(session, str(tmp_path / "m"), global_step=step) for step in range(2)]
        second.recover_last_checkpoints([*paths, "missing"])
        assert second.last_checkpoints == paths
        last = second.save(session, str(tmp_path / "m"), global_step=2)
    assert second.last_checkpoints == [paths[1], last] and not tf.train.checkpoint_exists(paths[0])


def test_paths_and_state_files(tmp_path: Path) -> None:
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver(pad_step_number=True, save_relative_paths=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "m"), global_step=step, latest_filename="latest")
        assert path == str(tmp_path / "m-00000000")
        with pytest.raises(ValueError, match="collides with 'save_path'"):
            saver.save(session, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match="must not contain path components"):
            saver.save(session, str(tmp_path / "m"), latest_filename="a/b")
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist, can't save"):
            saver.save(session, str(tmp_path / "no" / "such" / "m"))
        with pytest.raises(TypeError, match="'sess' must be a Session"):
            saver.save(None, str(tmp_path / "m"))
    assert 'model_checkpoint_path: "m-00000000"' in (tmp_path / "latest").read_text()
    assert tf.train.latest_checkpoint(str(tmp_path), "latest") == path
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    (tmp_path / "checkpoint").write_text("no such message {")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None


def test_a_saver_of_no_variables_writes_the_graph(tmp_path: Path) -> None:
    tf.constant(1.0, name="only")
    saver = tf.train.Saver(allow_empty=True)
    with tf.Session() as session:
        assert saver.save(session, str(tmp_path / "model"), global_step=1) is None
        saver.restore(session, str(tmp_path / "model-1"))
    assert [path.name for path in tmp_path.iterdir()] == ["model-1.meta"]
    with tf.Graph().as_default() as graph:
        assert tf.train.import_meta_graph(str(tmp_path / "model-1.meta")) is None
        assert [op.name for op in graph.get_operations()] == ["only"]


def test_there_is_a_time_for_each_checkpoint_of_a_state_file() -> None:
    make = tf.train.generate_checkpoint_state_proto
    state = make("folder", "b", ["a", "b"], all_model_checkpoint_timestamps=[1.5, 2.5])
    assert list(state.all_model_checkpoint_timestamps) == [1.5, 2.5]
    with pytest.raises(ValueError, match="timestamps"):  # the latest one has none
        make("folder", "b", ["a"], all_model_checkpoint_timestamps=[1.5])


# ---- what cannot be saved or restored


def test_savers_refuse_what_is_no_variable() -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    v = tf.Variable(1.0, name="v")
    with pytest.raises(TypeError, match="must be strings, not 1"):
        tf.train.Saver({1: v})
    with pytest.raises(TypeError, match="not a Variable"):
        tf.train.Saver([v + 1])
    with pytest.raises(ValueError, match="restored with two names"):
        tf.train.Saver({"a": v, "b": v})
    with pytest.raises(ValueError, match="same name"):
        tf.train.Saver([v, v])
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([v], defer_build=True)
    with pytest.raises(RuntimeError, match="should be called before save"):
        tf.train.Saver(defer_build=True).save(tf.Session(), "x")


def test_checkpoints_that_do_not_fit_a_graph(tmp_path: Path) -> None:
    path = str(tmp_path / "m")
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.Session() as session:
        session.run(v.initializer)
        tf.train.Saver([v]).save(session, path)
    other = tf.Variable(0.0, name="other")
    longer, whole = tf.Variable([0.0] * 3, name="longer"), tf.Variable([1, 2], name="whole")
    with tf.Session() as session:
        with pytest.raises(errors.NotFoundError, match="Key other not found in checkpoint"):
            tf.train.Saver([other]).restore(session, path)
        with pytest.raises(errors.InvalidArgumentError, match=r"mismatch between the current graph"):
            tf.train.Saver({"v": longer}).restore(session, path)
        with pytest.raises(
            errors.InvalidArgumentError, match=r"expected dtype int32 .* original dtype float32"
        ):
            tf.train.Saver({"v": whole}).restore(session, path)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            tf.train.Saver([v]).restore(session, path + "no")
        with pytest.raises(ValueError, match="None"):
            tf.train.Saver([v]).restore(session, None)
        data = tmp_path / "m.data-00000-of-00001"
        data.write_bytes(bytes([data.read_bytes()[0] ^ 1]) + data.read_bytes()[1:])
        with pytest.raises(errors.DataLossError, match=r"m\.data-00000-of-00001.* v"):
            tf.train.Saver([v]).restore(session, path)
        session.run(v.initializer)  # the session stays usable
        assert session.run(v).tolist() == [1, 2]


def test_a_process_that_is_killed_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """Killed at a dozen instants of saving: the last complete checkpoint is read."""
    program = textwrap.dedent(
        """
        import sys, flowstone as tf
        v = tf.Variable(tf.zeros([200000]), name="v")
        add, saver = v.assign_add(tf.ones([200000])), tf.train.Saver()
        with tf.Session() as session:
            session.run(v.initializer)
            print("ready", flush=True)
            while True:
                session.run(add.op)
                saver.save(session, sys.argv[1])
        """
    )
    path = str(tmp_path / "m")
    v = tf.Variable(np.zeros(200000, np.float32), name="v")
    saver, found = tf.train.Saver(), []
    for instant in range(12):
        process = forked.Process([path], code=program)
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(0.15 + 0.0137 * instant)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        process.stdout.close()
        if os.path.exists(path + ".index"):
            with tf.Session() as session:
                saver.restore(session, tf.train.latest_checkpoint(str(tmp_path)))
                values = session.run(v)
            assert (values == values[0]).all() and values[0] >= 1
            found.append(values[0])
    assert found


# ---- messages and parts


def test_partitioned_variables_are_restored_into_other_parts(tmp_path: Path) -> None:
    path = saver_programs.save(tf, "plain", str(tmp_path))
    other = tf.get_variable(
        "parts", [4, 3], partitioner=tf.fixed_size_partitioner(4), initializer=tf.zeros_initializer()
    )
    whole = tf.get_variable("again", [4, 3], initializer=tf.zeros_initializer())
    with tf.Session() as session:
        tf.train.Saver({"parts": other}).restore(session, path)
        tf.train.Saver({"parts": whole}).restore(session, path)
        for each in (tf.convert_to_tensor(other), whole):
            assert session.run(each).tolist() == (saver_programs.VALUES + 1).tolist()


def test_parts_are_saved_and_restored_under_another_name(tmp_path: Path) -> None:
    with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(2)):
        parts = tf.get_variable("t", [4, 3], initializer=tf.random_normal_initializer(seed=1))
    with tf.variable_scope("b", partitioner=tf.fixed_size_partitioner(3)):
        others = tf.get_variable("t", [4, 3])
    whole = tf.get_variable("whole", [4, 3])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver({"elsewhere": parts}).save(session, str(tmp_path / "model"))
        for given in (others, whole):
            tf.train.Saver({"elsewhere": given}).restore(session, path)
            expected, found = session.run([parts.as_tensor(), tf.convert_to_tensor(given)])
            assert found.tolist() == expected.tolist()
    assert tf.train.list_variables(path) == [("elsewhere", [4, 3])]
    with pytest.raises(ValueError, match="Slices must all be from the same tensor: a/t != b/t"):
        tf.train.Saver({"elsewhere": [next(iter(parts)), list(others)[1]]})


def test_messages_of_savers() -> None:
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver([v], max_to_keep=3, name="keeper")
    definition = saver.to_proto()
    assert definition.save_tensor_name == "keeper/control_dependency:0" and definition.max_to_keep == 3
    assert saver.to_proto("keeper").restore_op_name == "restore_all" and saver.to_proto("other") is None
    again = tf.train.Saver.from_proto(definition)
    assert again.as_saver_def() == definition
    with pytest.raises(ValueError, match="save_tensor_name"):
        tf.train.Saver(saver_def=tf.train.SaverDef())


def test_saveable_objects(tmp_path: Path) -> None:
    from flowstone.training.checkpoints.saveables import SaveableObject, SaveSpec

    table = tf.Variable([1.0, 2.0], name="table")

    class Doubled(SaveableObject):
        def __init__(self) -> None:
            super().__init__(table, [SaveSpec(table * 2, "", "twice")], "twice")

        def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
            return table.assign(restored_tensors[0] / 2)

    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled())
    saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
    with tf.Session() as session:
        session.run(table.initializer)
        path = saver.save(session, str(tmp_path / "m"))
        session.run(table.assign([0.0, 0.0]))
        saver.restore(session, path)
        assert session.run(table).tolist() == [1, 2]
    assert tf.train.load_variable(path, "twice").tolist() == [2, 4]


TABLES = [[1, 2, 3, -1], 3, [[0.5, 1.0], [1.5, 2.0], [0.0, 0.0]], 2]


def test_tables_that_change_are_saved_and_restored(tmp_path: Path) -> None:
    assert (
        saver_programs.restored_tables(tf, str(GOLDEN / "tables")) == TABLES
    )  # TensorFlow 1.15.5 saved them
    saver_programs.save_tables(tf, str(tmp_path / "tables"))
    assert saver_programs.restored_tables(tf, str(tmp_path / "tables")) == TABLES
    ours, theirs = (tf.train.NewCheckpointReader(str(path / "tables")) for path in (tmp_path, GOLDEN))
    assert ours.get_variable_to_shape_map() == theirs.get_variable_to_shape_map()
    assert ours.get_tensor("numbers-keys").tolist() == theirs.get_tensor("numbers-keys").tolist()


def test_operations_that_save_tables_have_tensorflows_names() -> None:
    with tf.Graph().as_default() as graph, tf.name_scope("a"):
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="tt")
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="not", checkpoint=False)
        (saveable,) = tf.get_collection("saveable_objects")
        assert [(spec.name, spec.tensor.name) for spec in saveable.specs] == [
            ("tt-keys", "a/tt_lookup_table_export_values/LookupTableExportV2:0"),
            ("tt-values", "a/tt_lookup_table_export_values/LookupTableExportV2:1"),
        ]
        tf.train.Saver()
        restore = graph.get_operation_by_name("a/save/tt_table_restore/LookupTableImportV2")
        assert restore.colocation_groups() == [b"loc:@a/tt"]


def test_a_saver_is_in_the_graph_of_its_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        variable = tf.Variable([1.0, 2.0])
        initializer = tf.global_variables_initializer()
    with tf.Graph().as_default() as other, tf.Session(graph=graph) as session:
        saver = tf.train.Saver([variable])
        session.run(initializer)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(variable.assign([5.0, 6.0]))
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(variable), [1.0, 2.0])
    assert other.get_operations() == []


# ---- builders of a program's own


class Doubling(alias_module("tensorflow.python.training.saver").BaseSaverBuilder):  # type: ignore[misc]
    """Saves the half of each value, and reads twice what is in the file."""

    def save_op(self, filename_tensor: Any, saveables: Any) -> Any:
        halves = [
            self.SaveableObject(
                each.op, [self.SaveSpec(each.specs[0].tensor / 2.0, "", each.name)], each.name
            )
            for each in saveables
        ]
        return super().save_op(filename_tensor, halves)

    def bulk_restore(
        self, filename_tensor: Any, saveables: Any, preferred_shard: Any, restore_sequentially: Any
    ) -> Any:
        tensors = super().bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        return [tensor * 2.0 for tensor in tensors]


def test_a_builder_saves_and_reads_in_its_own_way(tmp_path: Path) -> None:
    variables = [tf.Variable([4.0, 6.0], name="a"), tf.Variable(2.0, name="b", use_resource=True)]
    saver = tf.train.Saver(builder=Doubling())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        reader = tf.train.load_checkpoint(path)
        assert reader.get_tensor("a").tolist() == [2.0, 3.0] and reader.get_tensor("b") == 1.0
        session.run([tf.assign(variable, variable * 0.0) for variable in variables])
        saver.restore(session, path)
        assert [each.tolist() for each in session.run(variables)] == [[4.0, 6.0], 2.0]
    kinds = [each.type for each in tf.get_default_graph().get_operations()]
    assert kinds.count("RestoreV2") == 2 and issubclass(Doubling, SaverGraph)
    bulk = alias_module("tensorflow.python.training.saver").BulkSaverBuilder
    tf.train.Saver(builder=bulk())
    kinds = [each.type for each in tf.get_default_graph().get_operations()]
    assert kinds.count("RestoreV2") == 3
