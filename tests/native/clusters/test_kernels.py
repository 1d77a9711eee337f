"""When machine code takes the place of ATen's calls: by the number of calls, never by time; or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.codegen import host, making
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.runtime.code import planning_costs

ADD = Cluster((4, 8), (Array("float32", (4, 8)),) * 2, (Step("AddV2", (0, 1), "float32"),), (2,))
X = np.random.RandomState(0).randn(6, 40).astype(np.float32)


def program() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [6, 40])
    return x, tf.tanh(x * 3.0 + 0.5) * x


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, bool]]:
    """What is compiled, with an empty cache, and whether quickly."""
    making.wait_until_made()  # what other tests have asked for
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    seen: list[tuple[str, bool]] = []
    compile_one = kernels.NativeKernel.compile

    def compile_and_note(kernel: kernels.NativeKernel, quickly: bool = False) -> None:
        seen.append((repr(kernel.cluster), quickly))
        compile_one(kernel, quickly)

    monkeypatch.setattr(kernels.NativeKernel, "compile", compile_and_note)
    return seen


def test_what_changes_nothing_runs_by_machine_code_from_the_start(compiled: list[tuple[str, bool]]) -> None:
    name = "Mul+AddV2+Tanh+Mul"
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        first = session.run(y, {x: X})
        assert compiled == [(name, True)]
        results = [session.run(y, {x: X}) for _ in range(3)]
        making.wait_until_made()
        assert compiled == [(name, True), (name, False)]
        results.append(session.run(y, {x: X}))
    assert all(each.tobytes() == first.tobytes() for each in results)


def stateful_program() -> tuple[Any, Any, Any]:
    """A variable, what is computed from its old value with a change of it, and the same of a fed value."""
    v = tf.get_variable("v", [6, 40])
    x, y = program()
    return v, [v.assign_add(tf.exp(v * 2.0) * v), y], {x: X}


@pytest.mark.parametrize("calls", [1, 30])
def test_what_its_own_run_changes_begins_by_aten(
    calls: int, compiled: list[tuple[str, bool]], set_profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning_costs, "MOST_BY_ATEN", 0)  # as where a step takes long
    set_profile(cluster_much=0 if calls == 1 else 1e6)
    with tf.Graph().as_default(), tf.Session() as session:
        v, fetches, feed = stateful_program()
        session.run(v.initializer)
        assert not compiled  # nothing is fetched
        for _ in range(calls):
            session.run(fetches, feed)
            assert "Exp" not in str(compiled) and ("Mul+AddV2+Tanh+Mul", True) in compiled
        session.run(fetches, feed)
        assert "Exp" in str(compiled)


def test_short_steps_go_on_by_aten_while_code_is_made(
    compiled: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, set_profile
) -> None:
    """It is looked for after half of these steps, and is the best: how fast it is made changes no result."""
    set_profile(cluster_much=1e6)
    monkeypatch.setattr(planning_costs, "MOST_BY_ATEN", 60)
    begun: list[int] = []
    in_background = making.in_background
    with tf.Graph().as_default(), tf.Session() as session:
        v, fetches, feed = stateful_program()
        session.run(v.initializer)
        session.run(fetches, feed)
        monkeypatch.setattr(making, "in_background", lambda make: begun.append(step) or in_background(make))
        for step in range(2, 61):  # noqa: B007 - whoever makes code notes it
            session.run(fetches, feed)
            assert "Exp" not in str(compiled)
        assert len(begun) == len(set(begun)) > 0 and all(30 <= each <= 45 for each in begun)
        session.run(fetches, feed)
        assert [each for each in compiled if each[0] == "Mul+Exp"] == [("Mul+Exp", False)]


def test_the_first_kernel_that_needs_code_begins_that_of_its_plans_others(
    compiled: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, set_profile
) -> None:
    """Not before, since an initialiser runs once; and so the step waits for several threads' work."""
    set_profile(cluster_much=0)
    monkeypatch.setattr(planning_costs, "MOST_BY_ATEN", 0)
    begun: list[int] = []
    in_background = making.in_background
    with tf.Graph().as_default(), tf.Session() as session:
        _, fetches, feed = stateful_program()
        more = [tf.get_variable(f"w{rows}", [rows, 30]) for rows in (5, 6)]
        fetches += [each.assign_add(tf.exp(each * 2.0) * each) for each in more]
        session.run(tf.global_variables_initializer())
        session.run(fetches, feed)
        monkeypatch.setattr(making, "in_background", lambda make: begun.append(step) or in_background(make))
        for step in range(2, 5):  # noqa: B007 - whoever makes code notes it
            session.run(fetches, feed)
        assert len(begun) >= 2 and set(begun) == {2}
        assert len([each for each in compiled if "Exp" in each[0]]) == 3


def test_code_that_is_kept_is_loaded_before_it_is_needed(
    compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(4, 8)
    kernels.kernel_of(ADD, torch.add).make_better()  # for the cache
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    kernel = kernels.kernel_of(ADD, lambda x, y: (x + y,))
    kernel.begin_by_aten(40, turn=5)
    for call in range(1, 41):
        kernel(x, x)
        assert len(kernels._modules) == (call >= 25) and not kernel.is_compiled
    kernel(x, x)
    assert kernel.is_compiled and not kernel._is_quick


@pytest.mark.parametrize("how", ["flag", "call"])
def test_first_runs_wait_where_all_shall_be_the_same(
    how: str, compiled: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "DETERMINISTIC", how == "flag")
    if how == "call":
        tf.config.experimental.enable_op_determinism()
    with tf.Graph().as_default(), tf.Session() as session:
        v, fetches, feed = stateful_program()
        session.run(v.initializer)
        session.run(fetches, feed)
    assert "Exp" in str(compiled)


def test_code_made_quickly_is_kept_until_there_is_better(tmp_path: Path, compiled: list[Any]) -> None:
    for names in (["new-over0.quick.o"], ["o"]):
        with tf.Graph().as_default(), tf.Session() as session:
            x, y = program()
            session.run(y, {x: X})
            if names == ["o"]:
                session.run(y, {x: X})
                making.wait_until_made()
        assert [path.name.partition(".")[2] for path in tmp_path.rglob("*.o")] == names


def test_a_child_process_compiles_by_itself(compiled: list[Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        expected = session.run(y, {x: X}).tobytes()
        session.run(y, {x: X})  # the thread that compiles begins
        child = os.fork()
        if not child:
            found = {session.run(y, {x: X}).tobytes() for _ in range(3)}
            z = session.run(tf.tanh(x * 2.0 + 1.5) * x, {x: X})
            making.later(kernels.NativeKernel(ADD, torch.add, None).make_better)
            making.wait_until_made()
            os._exit(0 if found == {expected} and z.shape == X.shape else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_cluster_that_cannot_be_compiled_runs_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)

    def refuse(cluster: Any) -> str:
        raise RuntimeError("LLVM refuses")

    monkeypatch.setattr(kernels, "source_of", refuse)
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        results = [session.run(y, {x: X}) for _ in range(3)]
        making.wait_until_made()
        results.append(session.run(y, {x: X}))
    assert all((each == results[0]).all() for each in results)
    assert "LLVM refuses" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["switched off", "without llvmlite"])
def test_graphs_have_no_clusters_where_nothing_compiles(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "switched off":
        monkeypatch.setattr(flags, "NATIVE", 0)
    else:
        monkeypatch.setattr(host, "reason", lambda: "the package llvmlite is not installed")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        assert "_Cluster" not in session.explain(y, {x: X})


def test_threads_run_one_plan_while_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(flags, "NATIVE", 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda i: session.run(y, {x: X * i}), range(80)))
    for i, each in enumerate(results):
        np.testing.assert_allclose(each, np.tanh(X * i * 3 + 0.5) * X * i, rtol=2e-5, atol=1e-6)


def test_other_layouts_have_code_at_once(compiled: list[tuple[str, bool]]) -> None:
    kernel = kernels.kernel_of(ADD, lambda x, y: pytest.fail("by ATen"))
    x, apart = torch.randn(4, 8), torch.randn(4, 16)[:, 3:11]
    for inputs, pitched in (
        ((x, x), [False, False]),
        ((apart, x), [True, False]),
        ((x, apart), [True, True]),
        ((apart, apart), [True, True]),
    ):
        assert torch.equal(kernel(*inputs)[0], inputs[0] + inputs[1])
        assert [each.pitched for each in kernel.cluster.inputs] == pitched
    making.wait_until_made()
    assert torch.equal(kernel(apart, apart)[0], apart + apart)
