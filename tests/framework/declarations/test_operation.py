"""Tests of flowstone.framework.declarations.operation and building, with declarations of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import OpDeclaration, Registry
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types import dtypes

pytestmark = pytest.mark.usefixtures("graph")

FLOAT, INT = dtypes.float32, dtypes.int32


def declare(name: str, signature: str, attributes: str = "", **traits: Any) -> OpDeclaration:
    """A declaration that is registered nowhere, and infers nothing."""
    declaration = OpDeclaration(name, signature, attributes, **traits)
    declaration.infer(lambda node: [None] * len(node.outputs))
    return declaration


value = declare("Value", "-> output: dtype", "value: tensor", dtype=None)
value.infer(lambda node: node.attributes["value"].shape)
value.value()(lambda node: node.attributes["value"])
cell = declare("Cell", "-> ref: Ref(dtype)", "shape: shape", dtype=None, stateful=True)
add = declare("Add", "x: T, y: T -> z: T", T=(FLOAT, INT), commutative=True)
gather = declare("Gather", "x: T, at: int32 -> y: T", "axis: int = 0 ; mode: string in ['a', 'b'] = 'a'")
pack = declare("Pack", "values: N*T -> output: T", "N: int >= 2")
both = declare("Both", "x: N*T, y: N*T -> a: N*T, b: int32")
mixed = declare("Mixed", "x: *Ts -> y: *Ts")
assign = declare("Assign", "ref: Ref(T), value: T -> out: Ref(T)", mutates=[0])
effect = declare("Effect", "x: float ->", stateful=True)


def const(number: Any, dtype: Any = FLOAT) -> Any:
    return value(value=np.array(number, dtype.as_numpy_dtype), dtype=dtype)


def test_signature_is_read() -> None:
    described = [(a.name, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref) for a in both.inputs]
    assert described == [("x", "T", "N", None, False), ("y", "T", "N", None, False)]
    assert both.outputs[1].dtype is INT
    assert {name: spec.kind for name, spec in both.attributes.items()} == {"N": "int", "T": "type"}
    assert both.attributes["N"].minimum == 1
    assert mixed.attributes["Ts"].is_list
    assert assign.inputs[0].is_ref
    assert not assign.inputs[1].is_ref
    assert add.attributes["T"].allowed == {FLOAT, INT}
    assert add.attributes["T"].default is REQUIRED


@pytest.mark.parametrize("signature", ["x -> y: T", "x: -> y: T", "x: 3*T -> : T"])
def test_malformed_signature(signature: str) -> None:
    with pytest.raises(ValueError, match="malformed"):
        OpDeclaration("Odd", signature)


def test_types_of_arguments() -> None:
    found = [argument.types({"N": 2, "T": FLOAT}) for argument in both.outputs]
    assert found == [[FLOAT, FLOAT], [INT]]
    assert assign.outputs[0].types({"T": FLOAT}) == [FLOAT.as_ref]
    assert mixed.inputs[0].types({"Ts": (FLOAT, INT)}) == [FLOAT, INT]


def test_purity() -> None:
    assert add.is_pure
    assert not assign.is_pure
    assert not effect.is_pure
    assert not declare("Later", "->", asynchronous=True).is_pure


def test_results() -> None:
    x = const(1)
    assert add(x, x).op.type == "Add"
    assert effect(x).outputs == []
    assert [t.name for t in mixed([x, const(1, INT)])] == ["Mixed:0", "Mixed:1"]
    found = both([x, x], [x, x])
    assert [t.name for t in found.a] == ["Both:0", "Both:1"]
    assert (found.b.name, found.b.dtype) == ("Both:2", INT)


def test_arguments_by_name_and_attributes() -> None:
    x, at = const(1), const(0, INT)
    node = gather(at=at, x=x, axis=2, name="g").op
    assert [t.name for t in node.inputs] == ["Value:0", "Value_1:0"]
    assert node.attributes == {"axis": 2, "mode": "a", "T": FLOAT}
    assert node.name == "g"
    assert pack([x, x]).op.attributes == {"N": 2, "T": FLOAT}
    assert mixed([x, at])[1].op.attributes == {"Ts": (FLOAT, INT)}


def test_types_follow_the_inputs() -> None:
    ref = cell(shape=(), dtype=INT)
    assert add(ref, ref).dtype is INT
    assert assign(ref, const(1, INT)).dtype is INT.as_ref


@pytest.mark.parametrize(
    "build, error, text",
    [
        (lambda: add(const(1), const(1, INT)), TypeError, "'y' of 'Add'.*int32.*float32 of argument 'x'"),
        (lambda: add(const(1, dtypes.int64), const(1)), TypeError, "'T'.*'Add'.*int64"),
        (lambda: add(const(1)), TypeError, "'y' of op Add"),
        (lambda: add(const(1), const(1), const(1)), TypeError, "takes 2 inputs but 3"),
        (lambda: add(const(1), const(1), zork=1), TypeError, "unexpected keyword argument 'zork'"),
        (
            lambda: gather(const(1), const(1.0)),
            TypeError,
            "'at' of 'Gather'.*float32.*expected type of int32",
        ),
        (lambda: gather(const(1), const(0, INT), axis="x"), TypeError, "'axis' of op 'Gather'"),
        (lambda: gather(const(1), const(0, INT), mode="z"), ValueError, "'mode' of op 'Gather'"),
        (lambda: assign(const(1), const(1)), TypeError, "'ref' be a mutable tensor"),
        (lambda: pack([const(1)]), ValueError, "length 1 shorter than minimum length 2"),
        (lambda: pack(const(1)), TypeError, "Expected list for 'values'"),
        (lambda: pack([const(1), const(1, INT)]), TypeError, "don't all match"),
        (lambda: both([const(1)], [const(1)] * 2), ValueError, "must match"),
        (lambda: mixed([]), ValueError, "'Ts' of op 'Mixed'"),
        (lambda: value(dtype=FLOAT), TypeError, "attr 'value' of op Value"),
    ],
)
def test_errors_name_the_argument(graph: Graph, build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()
    assert all(op.type in ("Value", "Cell") for op in graph.get_operations())


def test_inputs_of_two_graphs() -> None:
    x = const(1)
    with Graph().as_default():
        y = const(1)
        with pytest.raises(ValueError, match="graph"):
            add(x, y)
        assert add(x, x).graph is x.graph


def test_inference_errors_name_the_node() -> None:
    strict = declare("Strict", "x: T -> y: T")

    @strict.infer
    def _(node: Any) -> Any:
        raise ValueError("too odd")

    with pytest.raises(ValueError, match=r"too odd for 'here' \(op: 'Strict'\) with input shapes: \[2\]"):
        strict(const([1, 2]), name="here")


def test_static_values() -> None:
    doubled = declare("Doubled", "x: T -> y: T")
    doubled.infer(lambda node: node.dims(0))
    doubled.kernel(CPU)(lambda node, env: lambda x: x * 2)
    deep = const([1, 2])
    for _ in range(3000):
        deep = doubled(deep)
    assert static_value(doubled(const([1, 2]))).tolist() == [2, 4]
    assert static_value(deep).tolist() == [np.inf, np.inf]
    assert static_value(cell(shape=(), dtype=FLOAT)) is None


def test_completeness_and_registry() -> None:
    registry = Registry()
    odd = registry.add(OpDeclaration("Odd", "x: T -> y: T"))
    with pytest.raises(TypeError, match="op Odd lacks: infer, kernel, gradient"):
        registry.check_complete()
    odd.infer(lambda node: None)
    odd.kernel(CPU, GPU)(lambda node, env: None)
    odd.not_differentiable()
    registry.check_complete()
    assert sorted(odd.kernels) == ["CPU", "GPU"]
    assert odd.gradient_kind == "not differentiable"
    assert (list(registry), len(registry), "Odd" in registry, registry.get("Even")) == (
        ["Odd"],
        1,
        True,
        None,
    )
    with pytest.raises(ValueError, match="Odd is declared twice"):
        registry.add(OpDeclaration("Odd", "->"))
