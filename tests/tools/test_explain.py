"""The command `flowstone explain`, started as a user would; `Session.explain`; and the texts they print."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
import forked
from flowstone.client.step_observation import StepObserver, current_observer
from flowstone.runtime.explaining.explanation import explanation_text, rewrite_text
from flowstone.tools.command_line import build_parser

pytestmark = pytest.mark.usefixtures("graph")

PROGRAM = """\
import sys
import numpy as np
import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 20], name="x")
y = tf.placeholder(tf.float32, [None, 5], name="y")
w = tf.Variable(tf.zeros([20, 5]))
count = tf.Variable(0)
counted = tf.assign_add(count, 1, name="counted")
logits = tf.matmul(x, w, name="logits")
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, name="train")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(30):
        session.run([train, loss], {x: np.ones((8, 20)), y: np.ones((8, 5))})
        session.run(counted)
    print("counted", session.run(count))
"""


@pytest.fixture(autouse=True)
def source_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def explain(*arguments: str, folder: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return forked.run(["explain", *arguments], folder=folder, given=stdin or "", timeout=300)


# ---- the command


def test_a_program_is_run_and_its_steps_are_explained(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    result = explain("--top", "4", "--json", "report.json", "program.py", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    text = result.stdout
    assert text.startswith("counted 30\n")  # the program's own output, and no step besides its own
    assert "62 steps of 4 kinds took" in text
    assert [line[:4] for line in text.splitlines() if line.startswith("[")] == [
        "[1] ",
        "[2] ",
        "[3] ",
        "[4] ",
    ]
    gist = text[text.index("in short\n") : text.index("\n\n[1] ")]
    lines = gist[gist.index("] loss, train\n") :].splitlines()[1:6]
    patterns = (
        r"30 steps of [\d.]+ [mu]s",
        r"time      \w+ \d+% \([\d.]+ x its floor\), .*",
        r"floors    [\d.]+ us for all nodes, of which a step takes [\d.]+ x",
        r"memory    variables and constants .*, fed 800 B, values at most .*",
        r"rewrites  \d+: \w+ \d+, .*",
    )
    assert len(lines) == len(patterns)
    assert [line for line, pattern in zip(lines, patterns) if not re.fullmatch(6 * " " + pattern, line)] == []
    (training,) = [
        each for each in re.split(r"^\[\d\] ", text, flags=re.M) if each.startswith("step of loss")
    ]
    assert training.startswith("step of loss, train\n")
    assert "fed with x[8,20], y[8,5]" in training
    assert re.search(r"^  30 steps, .* a step \(median\), 5 traced$", training, re.MULTILINE)
    assert re.search(r"^  fuse_losses +1  only loss takes the losses", training, re.MULTILINE)
    assert re.search(r"^  MatMul +\d +[\d.]+ [mu]s +\d+% ", training, re.MULTILINE)
    assert re.search(
        r"call +MatMul  program.py:10\n      logits\(float32\[8,20\], float32\[20,5\]\) ->", training
    )
    assert "variables and constants" in training and "fed values 800 B" in training
    assert text.count("Gflop/s, convolution") == 1
    assert "def segment" not in text and "_Arg()" not in text
    assert max(map(len, text.splitlines())) <= 100

    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["kinds"], report["steps"], len(report["explanations"])) == (4, 62, 4)
    (first,) = [each for each in report["explanations"] if each["fetches"] == ["loss", "train"]]
    assert first["steps"] == 30 and first["feeds"] == ["x[8,20]", "y[8,5]"]
    assert "def segment" in first["code"] and "_record(" not in first["code"]
    assert "MatMul(" in first["graph"] and first["rewrites"]
    profile = first["profile"]
    (product,) = [node for node in profile["nodes"] if node["name"] == "logits"]
    assert product["operations_flop"] == 2 * 8 * 20 * 5
    assert product["floor_ms"] > 0 and product["time_ms"] > 0 and product["bound"] == "call"
    assert profile["memory"]["fed_bytes"] == 8 * 25 * 4
    assert profile["memory"]["peak_bytes"] >= 8 * 5 * 4
    (machine,) = profile["machines"].values()
    assert machine["intra_op_threads"] == 1


def test_graph_and_code_are_shown_on_request(tmp_path: Path) -> None:
    source = "import tensorflow as tf\nwith tf.Session() as s: s.run(tf.exp(tf.random_normal([3]), name='y'))"
    result = explain("--graph", "--code", "--nodes", "1", "-", "a", folder=tmp_path, stdin=source)
    assert result.returncode == 0, result.stderr
    text = result.stdout
    assert "1 step of 1 kind took" in text and "[1] step of y" in text
    assert "traced: only the first" in text
    assert "graph after rewriting\n  %0 = " in text
    assert "generated code\n  def segment(step" in text
    assert "_record(" not in text
    assert re.search(r"  and \d more", text)


@pytest.mark.parametrize(
    ("ending", "status"), [("raise SystemExit(3)", 3), ("1 / 0", 1), ("raise KeyboardInterrupt", 130)]
)
def test_steps_are_explained_however_the_program_ends(tmp_path: Path, ending: str, status: int) -> None:
    source = f"import tensorflow as tf\ntf.Session().run(tf.exp([1.0, 2.0], name='y'))\n{ending}\n"
    (tmp_path / "program.py").write_text(source)
    result = explain("program.py", folder=tmp_path)
    assert result.returncode == status
    assert "[1] step of y" in result.stdout
    if status == 1:
        assert 'File "program.py", line 3' in result.stderr.splitlines()[1].replace(f"{tmp_path}/", "")


def test_a_program_without_steps_says_so(tmp_path: Path) -> None:
    result = explain("-", folder=tmp_path, stdin="import tensorflow as tf\nprint('done')")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n") == ["done", "", "The program ran no steps that could be watched.", ""]


def test_what_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    result = explain("missing.py", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "flowstone explain: no such file: missing.py\n"
    (tmp_path / "program.py").write_text("print('ran')")
    result = explain("--json", "nowhere/report.json", "program.py", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "no such folder" in result.stderr
    for arguments in (["--top", "0", "program.py"], ["--steps", "x", "program.py"], []):
        result = explain(*arguments, folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert "usage: flowstone explain" in result.stderr


def test_options_end_where_the_program_begins() -> None:
    options = build_parser().parse_args(["explain", "--top", "3", "--code", "p.py", "--top", "9", "--json"])
    assert (options.top, options.code, options.json, options.graph) == (3, True, None, False)
    assert (options.program, options.arguments) == ("p.py", ["--top", "9", "--json"])
    options = build_parser().parse_args(["explain", "-m", "package.module", "-x"])
    assert (options.as_module, options.program, options.arguments) == (True, "package.module", ["-x"])


# ---- watched sessions


def test_watching_changes_no_results_and_ends_with_its_context() -> None:
    v = tf.Variable(0.0)
    x = tf.placeholder(tf.float32, [None])
    add = tf.assign_add(v, tf.reduce_sum(x))
    with tf.Session() as session:
        session.run(v.initializer)
        observer = StepObserver(2)
        with observer.watching():
            assert current_observer() is observer
            results = [session.run(add, {x: [1.0] * (1 + i % 2)}) for i in range(20)]
            assert session.make_callable(add, [x])([1.0]) == 31.0
        assert current_observer() is None
    assert results == list(np.cumsum([1.0, 2.0] * 10))
    assert sorted(kind.runs for kind in observer.kinds()) == [10, 11]  # a kind for each shape
    for kind in observer.kinds():
        explanation = kind.explanation()
        assert explanation.profile is not None and explanation.profile.traced_steps == 2
        assert not explanation.is_cold
        assert kind.total_ms >= 5 * explanation.profile.step_ms
        assert len(kind.durations_ms) == 5  # 1 planned; 0, 4, 6, 8 (and 10) were traced


def test_steps_that_fail_are_the_programs_business() -> None:
    queue = tf.FIFOQueue(10, [tf.float32], [[]])
    fill, close = queue.enqueue_many([[1.0, 2.0]]), queue.close()
    taken = tf.exp(queue.dequeue(), name="taken")
    observer = StepObserver(5)
    with observer.watching(), tf.Session() as session:
        session.run(fill)
        session.run(close)
        assert len([session.run(taken) for _ in range(2)]) == 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken)
    (kind,) = [kind for kind in observer.kinds() if kind.fetches == ("taken",)]
    assert kind.runs == 3
    text = explanation_text(kind.explanation())
    assert "QueueDequeueV2 (waits)" in text


def test_what_failed_at_once_has_rewrites_but_no_times() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.log(x, name="y")
    checked = tf.check_numerics(y, "no number", name="checked")
    observer = StepObserver(5)
    with observer.watching(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(checked, {x: [-1.0, 1.0]})
    (kind,) = observer.kinds()
    explanation = kind.explanation()
    assert explanation.profile is None
    assert explanation_text(explanation).startswith("step of checked\n  fed with x[2]\n  1 step, 0.0 us\n")


# ---- Session.explain


def test_a_closed_session_measures_nothing() -> None:
    y = tf.exp([1.0])
    session = tf.Session()
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.explain(y, measure=True)


@pytest.mark.by_aten
def test_steps_on_several_devices_are_explained() -> None:
    with tf.device("/cpu:0"):
        a = tf.exp(tf.random_normal([100, 100]), name="a")
    with tf.device("/cpu:1"):
        b = tf.matmul(a, a, name="b")
    with tf.Session(
        config=tf.ConfigProto(device_count={"CPU": 2}, intra_op_parallelism_threads=2)
    ) as session:
        text = session.explain(b, measure=True, steps=1)
    assert re.search(r"MatMul on CPU:1", text)
    assert re.search(r"^  _Recv\w* \(waits\)", text, re.MULTILINE)
    gist = text[: text.index("\n\n")]
    assert "x its floor" in gist and "_Recv" not in gist
    assert "CPU:0, CPU:1, 1 intra-op thread\n" in text


# ---- the log


def test_long_lists_of_names_fit_into_a_line() -> None:
    text = rewrite_text([("fold", f"a_rather_long_name_{i}", "known before the step") for i in range(50)])
    head, line = text.splitlines()
    assert head == "50 rewrites"
    assert len(line) <= 100 and line.endswith(" more)")
    assert rewrite_text([("fold", "n" * 200, "why")]).splitlines()[1].endswith("…")
    assert rewrite_text([]) == "0 rewrites"
