"""How machine code takes the place of ATen's calls: in the background, at plan time, not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native import host, kernels
from flowstone.native.clusters import Array, Cluster, Step

X = np.random.RandomState(0).randn(6, 40).astype(np.float32)


def program() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [6, 40])
    return x, tf.tanh(x * 3.0 + 0.5) * x


def test_code_comes_after_the_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    seen: list[str] = []
    compile_one = kernels.NativeKernel.compile

    def compile_and_note(kernel: kernels.NativeKernel) -> None:
        compile_one(kernel)
        seen.append(repr(kernel.cluster))

    monkeypatch.setattr(kernels.NativeKernel, "compile", compile_and_note)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        first = session.run(y, {x: X})
        assert seen == []
        session.run(y, {x: X})
        kernels.wait_until_compiled()
        assert seen == ["Mul+AddV2+Tanh+Mul"]
        np.testing.assert_allclose(session.run(y, {x: X}), first, rtol=1e-6, atol=1e-7)


def test_a_cluster_that_cannot_be_compiled_runs_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)

    def refuse(cluster: Any) -> str:
        raise RuntimeError("LLVM refuses")

    monkeypatch.setattr(kernels, "source_of", refuse)
    monkeypatch.setattr(kernels, "_modules", {})
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        results = [session.run(y, {x: X}) for _ in range(3)]
        kernels.wait_until_compiled()
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


def test_calls_until_the_code_is_there_are_no_layouts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second layout that comes after many calls is compiled for, too."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    cluster = Cluster((4, 8), (Array("float32", (4, 8)),) * 2, (Step("AddV2", (0, 1), "float32"),), (2,))
    kernel = kernels.kernel_of(cluster, lambda x, y: (x + y,))
    monkeypatch.setattr(flags, "NATIVE", 1)
    asked: list[Any] = []
    monkeypatch.setattr(kernels, "_compile_later", asked.append)
    x, apart = torch.randn(4, 8), torch.randn(4, 16)[:, 3:11]
    for _ in range(20):
        assert torch.equal(kernel(apart, x)[0], apart + x)
    kernel.compile()
    for _ in range(3):
        assert torch.equal(kernel(x, apart)[0], apart + x)
    kernel.compile()
    assert asked and [each.pitched for each in kernel.cluster.inputs] == [True, True]
    assert torch.equal(kernel(apart, apart)[0], apart + apart)
