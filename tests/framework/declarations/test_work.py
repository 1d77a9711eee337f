"""Costs and roles on declarations: which ops have which, and what the formulas count."""

from __future__ import annotations

import doctest

import pytest

import flowstone.lowering.passes  # noqa: F401  (declares the ops)
from flowstone.framework.declarations import work
from flowstone.framework.declarations.operation import registry
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses import branches, frames

PRODUCTS = ["MatMul", "BatchMatMul", "BatchMatMulV2", "_FusedMatMul", "_PackedMatMul"]


def node(name, inputs, outputs, **attributes):
    source = Node(registry["NoOp"], "source", [], {}, (), [], "", 0)
    given = [Output(source, i, dtypes.float32, dims) for i, dims in enumerate(inputs)]
    made = Node(registry[name], "made", given, attributes, (1,) * len(given), [], "", 0)
    made.outputs = [Output(made, i, dtypes.float32, dims) for i, dims in enumerate(outputs)]
    return made


IMAGES, FILTER, RESULT = (2, 8, 8, 3), (3, 3, 3, 16), (2, 4, 4, 16)
COSTS = [
    *[(name, [(2, 3), (3, 4)], [(2, 4)], 48) for name in PRODUCTS],
    ("BatchMatMul", [(5, 2, 3), (5, 3, 4)], [(5, 2, 4)], 240),
    ("_ProductSumAdd", [(), (2, 3), (2, 4)], [()], 48),
    ("_ApplyProduct", [(2, 4), (), (2, 3), (3, 4)], [(2, 4)], 48),
    ("_ResourceApplySum", [(), (), (6, 4)], [], 48),
    *[(name, [IMAGES, FILTER], [RESULT], 2 * 2 * 4 * 4 * 16 * 27) for name in ("Conv2D", "_BiasedConv2D")],
    ("Conv2DBackpropInput", [(4,), FILTER, RESULT], [IMAGES], 2 * 2 * 4 * 4 * 16 * 27),
    ("Conv2DBackpropFilter", [IMAGES, (4,), RESULT], [FILTER], 2 * 2 * 4 * 4 * 16 * 27),
    ("DepthwiseConv2dNative", [IMAGES, (3, 3, 3, 2)], [(2, 4, 4, 6)], 2 * 2 * 4 * 4 * 6 * 9),
    ("AvgPool", [(1, 8, 8, 4)], [(1, 4, 4, 4)], 4 * 64),
    ("MaxPoolGrad", [(1, 8, 8, 4)] * 3, [(1, 8, 8, 4)], 4 * 256),
    ("Exp", [(10,)], [(10,)], 80),
    ("Softmax", [(2, 5)], [(2, 5)], 100),
    ("FusedBatchNormGradV3", [(2, 5)] * 6, [(2, 5)], 120),
    ("ResourceApplyAdam", [(), (), (), (), (), (), (), (), (), (10,)], [], 12),
]


@pytest.mark.parametrize(("name", "inputs", "outputs", "operations"), COSTS)
def test_operations_of_an_op(name, inputs, outputs, operations):
    made = node(name, inputs, outputs, data_format="NHWC", ksize=(1, 2, 2, 1))
    cost = registry[name].cost_function
    assert cost is not None and cost(made) == pytest.approx(operations)


COUNTED_BY_ELEMENT = {  # they multiply, but no more is said of them than of other ops
    "FractionalAvgPoolGrad",
    "FractionalMaxPoolGrad",
    "_AddedMatMul", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad", "MaxPoolGradWithArgmax",
    "MaxPoolGradGradWithArgmax",
}  # fmt: skip


def test_every_product_and_convolution_has_a_cost():
    kinds = ("MatMul", "Conv2D", "Conv3D", "DepthwiseConv2d", "Pool")
    without = {
        name
        for name in registry
        if any(kind in name for kind in kinds) and registry[name].cost_function is None
    }
    assert without == COUNTED_BY_ELEMENT


def test_roles_and_what_is_free():
    for role, names in {
        "switch": "Switch RefSwitch", "merge": "Merge RefMerge", "enter": "Enter RefEnter",
        "exit": "Exit RefExit", "next_iteration": "NextIteration RefNextIteration",
        "loop_condition": "LoopCond",
    }.items():  # fmt: skip
        assert registry.with_role(role) == set(names.split())
        assert all(registry[name].is_free for name in names.split())
    assert registry["Const"].holds_state and registry["VarHandleOp"].holds_state
    assert not registry["Add"].is_free and not registry["Add"].role


def test_the_roles_that_passes_ask_for():
    assert {"Enter", "RefEnter"} == frames.ENTERS and {"Exit", "RefExit"} == frames.EXITS
    assert frames.ENTERS | frames.EXITS | frames.NEXT_ITERATIONS | {"LoopCond"} == frames.LOOP_TYPES
    assert {"Switch", "RefSwitch"} == branches.SWITCHES and {"Merge", "RefMerge"} == branches.MERGES


def test_traits_that_follow_from_others():
    assert registry["AddV2"].by_element and registry["Floor"].by_element
    assert registry["Reshape"].is_view and not registry["MatMul"].is_view
    assert not registry["MatMul"].by_element


@pytest.mark.parametrize(
    ("name", "at"), [("ScatterAdd", 2), ("SparseApplyMomentum", 3), ("ResourceScatterNdUpdate", 2)]
)
def test_rows_of_a_change(name, at):
    made = node(name, [(100, 4), (5, 4), (5, 4), (5, 4), (5,)], [(100, 4)])
    assert registry[name].rows_function(made) is made.inputs[at]


def test_rows_that_a_gather_takes():
    made = node("GatherV2", [(100, 4), (5,), ()], [(5, 4)])
    assert registry["GatherV2"].rows_function(made) is made.outputs[0]
    assert registry["MatMul"].rows_function is None


def test_examples_in_the_module():
    results = doctest.testmod(work)
    assert results.failed == 0 and results.attempted > 0
