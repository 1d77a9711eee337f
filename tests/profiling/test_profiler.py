"""`tf.profiler`: what it prints and returns, compared with TensorFlow 1.15.5; files; several steps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import profiler_cases as cases
import pytest
from google.protobuf import text_format

import flowstone as tf
from flowstone.io.proto.pprof_pb2 import Profile
from flowstone.profiling.float_operations import COUNTED, IncompleteShape, float_operations

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/profiler.json").read_text())
BUILDER = tf.profiler.ProfileOptionBuilder


def metadata(device: str = "CPU:0", slower: int = 1) -> Any:
    message = tf.RunMetadata()
    text_format.Parse(cases.step(device, slower), message)
    return message


def run(case: Any, output: str) -> Any:
    view, device, _, _ = case
    options = {**cases.options(BUILDER, case), "output": output}
    run_meta = metadata(device) if device else None
    return tf.profiler.profile(cases.build_model(tf), run_meta, cmd=view, options=options)


# ---- compared with TensorFlow


@pytest.mark.parametrize("name", cases.CASES)
def test_rows(name: str, tmp_path: Path) -> None:
    case = cases.CASES[name]
    run(case, f"file:outfile={tmp_path / 'text'}")
    rows = (tmp_path / "text").read_text().partition("Profile:\n")[2].rstrip("\n").split("\n")
    expected = GOLDEN["rows"][name]
    if case[0] == "code":  # TensorFlow leaves the order of equal lines open
        rows, expected = sorted(rows), sorted(expected)
    assert rows == expected


def plain(message: Any) -> Any:
    """A message without the nodes of lines outside the model, and its lines in one order."""
    if hasattr(message, "graph_nodes"):
        message.children.sort(key=lambda child: child.name)
    for child in message.children:
        plain(child)
    return message


@pytest.mark.parametrize("name", cases.MESSAGES)
def test_messages(name: str) -> None:
    made = run(cases.CASES[name], "none")
    expected = text_format.Parse(GOLDEN["messages"][name], type(made)())
    assert plain(made) == plain(expected)


@pytest.mark.parametrize("index", range(len(cases.OPERATIONS)))
def test_float_operations(index: int) -> None:
    op, inputs, attributes = cases.OPERATIONS[index]
    with tf.Graph().as_default():
        made = cases.node(tf, op, inputs, attributes)
        try:
            count = float_operations(made, {})
        except IncompleteShape:
            count = None
    assert count == GOLDEN["operations"][index]


def test_all_counted_ops_are_compared() -> None:
    """But for the later forms, which count as those that TensorFlow 1.15.5 counts."""
    compared = {op for op, _, _ in cases.OPERATIONS}
    assert set(COUNTED) - compared == {"AddV2", "BatchMatMulV2", "BatchMatMulV3"}


def test_counts_that_tensorflow_does_not_make() -> None:
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [5, 3, 2]), tf.placeholder(tf.float32, [5, 3, 7])
        product = tf.matmul(x, y, transpose_a=True)
        image = tf.placeholder(tf.float32, [2, 3, 8, 8])
        pooled = tf.nn.max_pool(image, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW")
    assert float_operations(product.op, {}) == 2 * 5 * 2 * 7 * 3  # TensorFlow takes 2 for the inner size
    assert float_operations(pooled.op, {}) == 4 * pooled.shape.num_elements()  # it refuses this order


@pytest.mark.parametrize("device", cases.ADVICE)
def test_advice(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = tf.profiler.advise(cases.build_model(tf), metadata(device))
    reports = {checker: list(made.checkers[checker].reports) for checker in sorted(made.checkers)}
    expected = GOLDEN["advice"][device]
    slow_order = expected.pop("OperationChecker")
    assert len(reports.pop("OperationChecker")) == len(slow_order)
    assert reports == expected
    assert reports["ExpensiveOperationChecker"][0] in capsys.readouterr().out


# ---- of our own


def test_prints_options_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    tf.profiler.profile(cases.build_model(tf), options=BUILDER.trainable_variables_parameter())
    printed = capsys.readouterr().out
    assert "-account_type_regexes       _trainable_variables\n" in printed
    assert "-account_displayed_op_only  true\n-select                     params\n" in printed
    assert printed.rstrip().endswith("\n".join(GOLDEN["rows"]["parameters"]))


def test_default_graph_and_a_real_step(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", [3, 4])
        y = tf.matmul(x, w, name="y")
        message = tf.RunMetadata()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(y, {x: np.ones([5, 3])}, traced, message)
        unknown = tf.profiler.profile(options={**BUILDER.float_operation(), "output": "none"})
        profile = tf.profiler.profile(
            run_meta=message, options={**BUILDER.float_operation(), "output": "none"}
        )
        timed = tf.profiler.profile(graph, message, cmd="op", options=BUILDER.time_and_memory(min_bytes=0))
    assert "y" not in [child.name for child in unknown.children]  # the batch is not known
    (product,) = [child for child in profile.children if child.name == "y"]
    assert product.float_ops == 2 * 5 * 3 * 4
    assert [dim.size for dim in product.input_shapes[0].dim] == [5, 3]
    kinds = timed
    names = []
    while kinds.children:
        (kinds,) = kinds.children
        names.append(kinds.name)
    assert "MatMul" in names
    assert timed.total_exec_micros > 0
    assert "MatMul" in capsys.readouterr().out


def test_steps_and_their_average() -> None:
    profiler = tf.profiler.Profiler(cases.build_model(tf))
    options = BUILDER(BUILDER.time_and_memory()).with_empty_output()
    profiler.add_step(1, metadata())
    first = profiler.profile_name_scope(options.build()).total_exec_micros
    profiler.add_step(4, metadata(slower=3))
    assert profiler.profile_name_scope(options.with_step(1).build()).total_exec_micros == first
    assert profiler.profile_graph(options.with_step(4).build()).total_exec_micros > 2.9 * first
    average = profiler.profile_operations(options.with_step(-1).build()).total_exec_micros
    assert average == pytest.approx(2 * first, rel=0.01)
    assert profiler.profile_python(options.with_step(9).build()).total_exec_micros == 0  # there is none
    named = profiler.advise({"ExpensiveOperationChecker": {}})
    assert list(named.checkers) == ["ExpensiveOperationChecker"]
    assert len(profiler.advise({}).checkers) == 3
    assert not profiler.advise({"JobChecker": {}}).checkers


def test_a_step_is_kept_as_it_was_added() -> None:
    profiler, message = tf.profiler.Profiler(cases.build_model(tf)), metadata()
    profiler.add_step(0, message)
    message.Clear()
    options = BUILDER(BUILDER.time_and_memory()).with_empty_output().build()
    assert profiler.profile_graph(options).total_exec_micros > 2000


def test_given_operations_and_types(capsys: pytest.CaptureFixture[str]) -> None:
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="square", float_ops=77, types=["mine"])
    log.log_entries.add(name="absent", float_ops=5, types=["mine"])
    options = BUILDER(BUILDER.float_operation()).with_accounted_types(["mine"]).build()
    message = tf.profiler.profile(cases.build_model(tf), op_log=log, options=options)
    assert [(child.name, child.float_ops) for child in message.children] == [("square", 77)]
    assert "square (77/77 flops)" in capsys.readouterr().out
    assert len(log.log_entries) == 2  # the caller's is not changed


def test_write_op_log(tmp_path: Path) -> None:
    graph = cases.build_model(tf)
    tf.profiler.write_op_log(graph, str(tmp_path), run_meta=metadata())
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in log.log_entries}
    assert list(entries) == [op.name for op in graph.get_operations()]
    assert entries["net/conv"].float_ops == 69120
    assert list(entries["net/w"].types) == ["_trainable_variables"]
    lines = [
        trace
        for trace in entries["net/conv"].code_def.traces
        if log.id_to_string[trace.file_id] == "model.py"
    ]
    assert [(line.lineno, log.id_to_string[line.function_id]) for line in lines] == [(6, "build")]
    again = tf.Graph()
    with again.as_default():  # a graph that other lines made
        tf.import_graph_def(graph.as_graph_def(), name="")
    log.id_to_string[900] = "unused"
    options = cases.options(BUILDER, cases.CASES["operations by line"])
    of_given = tf.profiler.profile(again, op_log=log, cmd="code", options={**options, "output": "none"})
    assert of_given.children[0].name == "model.py:6:build"
    tf.profiler.write_op_log(graph, str(tmp_path), add_trace=False)
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    assert len(log.log_entries) == 9
    assert not any(entry.code_def.traces for entry in log.log_entries)


def written(builder: Any, cmd: str, folder: Path) -> list[Path]:
    tf.profiler.profile(cases.build_model(tf), metadata("GPU:0"), cmd=cmd, options=builder.build())
    return sorted(folder.iterdir())


@pytest.mark.parametrize("cmd", ["scope", "code"])
def test_nested_timeline(cmd: str, tmp_path: Path) -> None:
    builder = BUILDER(BUILDER.time_and_memory()).with_timeline_output(str(tmp_path / "trace"))
    builder.with_node_names(show_name_regexes=["net.*|model.py.*"])
    (file,) = written(builder, cmd, tmp_path)
    assert file.name == "trace_-1"
    bars = {e["name"]: e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"}
    above, below = ("net", "net/conv") if cmd == "scope" else ("_TFProfRoot", "model.py:6:build")
    assert bars[below]["pid"] == bars[above]["pid"] + 1
    assert bars[below]["dur"] == 4000
    assert bars[below]["ts"] >= bars[above]["ts"]
    assert bars[below]["ts"] + 4000 <= bars[above]["ts"] + bars[above]["dur"]


def test_timeline_of_a_step(tmp_path: Path) -> None:
    builder = BUILDER(BUILDER.time_and_memory()).with_timeline_output(str(tmp_path / "trace"))
    (file,) = written(builder, "graph", tmp_path)
    assert file.name == "trace_0"
    events = json.loads(file.read_text())["traceEvents"]
    assert [e["args"]["name"].rpartition("device:")[2] for e in events if e["ph"] == "M"] == [
        "gpu:0",
        "gpu:0/stream:all",
    ]
    convolution = [(e["ts"], e["dur"]) for e in events if e["name"] == "net/conv"]
    assert convolution == [(1003, 2100), (1010, 1900)]


def test_pprof(tmp_path: Path) -> None:
    builder = BUILDER(BUILDER.time_and_memory()).select(["micros"]).with_pprof_output(str(tmp_path / "p"))
    (file,) = written(builder, "code", tmp_path)
    profile = Profile.FromString(gzip.decompress(file.read_bytes()))
    texts = list(profile.string_table)
    assert [(texts[x.type], texts[x.unit]) for x in profile.sample_type][1] == ("micros", "microseconds")
    functions = {x.id: texts[x.name] for x in profile.function}
    places = {x.id: (functions[x.line[0].function_id], x.line[0].line) for x in profile.location}
    samples = {texts[x.label[0].str]: x for x in profile.sample}
    assert list(samples["net/conv"].value) == [1, 4000]
    assert ("model:build", 6) in [places[i] for i in samples["net/conv"].location_id]
    assert sum(x.value[1] for x in profile.sample) == 4540  # what requested no bytes is not shown


@pytest.mark.parametrize(
    ("cmd", "output"), [("scope", "pprof:outfile="), ("op", "timeline:outfile="), ("code", "pprof:outfile=")]
)
def test_what_has_no_such_file_is_still_returned(cmd: str, output: str, tmp_path: Path) -> None:
    options = {**BUILDER.time_and_memory(), "output": f"{output}{tmp_path / 'f'}"}
    assert tf.profiler.profile(cases.build_model(tf), metadata(), cmd=cmd, options=options).total_exec_micros
    assert not list(tmp_path.iterdir())


def test_bad_requests() -> None:
    graph = cases.build_model(tf)
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown cmd: rows"):
        tf.profiler.profile(graph, cmd="rows")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no output paper"):
        tf.profiler.profile(graph, options={"output": "paper"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="no checker Any"):
        tf.profiler.advise(graph, options={"Any": {}})


def test_a_long_chain_and_a_loop() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0, name="x")
        for _ in range(3000):
            x = tf.negative(x)
        y = tf.while_loop(lambda i: i < 3.0, lambda i: i + 1.0, [x])
    options = BUILDER(BUILDER.float_operation()).with_empty_output().build()
    for cmd in ("scope", "graph", "op", "code"):
        message = tf.profiler.profile(graph, cmd=cmd, options=options)
        assert message.total_float_ops == 3002
    assert y.shape == ()
