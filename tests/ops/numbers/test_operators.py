"""The nodes that operators and mathematical functions add: names and types, as TensorFlow makes them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.numbers.operators import install_operators

pytestmark = pytest.mark.usefixtures("graph")

CASES: list[tuple[Callable[[Any], Any], str]] = [  # a constant has no type here
    (lambda x: tf.add(x.x, x.y), "Add:Add"),
    (lambda x: tf.subtract(x.x, 1.0), "Sub/y Sub:Sub"),
    (lambda x: tf.divide(x.x, x.y), "truediv:RealDiv"),
    (lambda x: tf.div(x.i, x.i), "div:FloorDiv"),
    (lambda x: tf.truediv(x.i, x.i), "truediv/Cast:Cast truediv/Cast_1:Cast truediv:RealDiv"),
    (lambda x: tf.floordiv(x.x, x.y), "floordiv:FloorDiv"),
    (lambda x: tf.mod(x.x, x.y), "FloorMod:FloorMod"),
    (lambda x: x.x + 1.0, "add/y add:AddV2"),
    (lambda x: 1.0 + x.x, "add/x add:AddV2"),
    (lambda x: 2 - x.x, "sub/x sub:Sub"),
    (lambda x: x.x * 2, "mul/y mul:Mul"),
    (lambda x: x.x / x.y, "truediv:RealDiv"),
    (lambda x: x.i / 2, "truediv/y truediv/Cast:Cast truediv/Cast_1:Cast truediv:RealDiv"),
    (lambda x: 3 // x.i, "floordiv/x floordiv:FloorDiv"),
    (lambda x: 3 % x.i, "mod/x mod:FloorMod"),
    (lambda x: x.x**2, "pow/y pow:Pow"),
    (lambda x: -x.x, "Neg:Neg"),
    (lambda x: abs(x.c), "Abs:ComplexAbs"),
    (lambda x: ~x.b, "LogicalNot:LogicalNot"),
    (lambda x: x.b & True, "and/y and:LogicalAnd"),
    (
        lambda x: x.b ^ x.b,
        "xor/LogicalOr:LogicalOr xor/LogicalAnd:LogicalAnd xor/LogicalNot:LogicalNot xor:LogicalAnd",
    ),
    (lambda x: x.i & x.i, "and/BitwiseAnd:BitwiseAnd"),
    (lambda x: x.i < 3, "Less/y Less:Less"),
    (lambda x: x.x <= x.y, "LessEqual:LessEqual"),
    (lambda x: x.x >= 2.0, "GreaterEqual/y GreaterEqual:GreaterEqual"),
    (lambda x: x.a @ x.a, "matmul:MatMul"),
    (lambda x: tf.abs(x.c), "Abs:ComplexAbs"),
    (lambda x: tf.round(x.i), ""),
    (lambda x: tf.real(x.x), ""),
    (lambda x: tf.conj(x.c), "Conj:Conj"),
    (lambda x: tf.maximum(x.x, 0.0), "Maximum/y Maximum:Maximum"),
    (
        lambda x: tf.logical_xor(x.b, x.b),
        "LogicalOr:LogicalOr LogicalAnd:LogicalAnd LogicalNot:LogicalNot LogicalXor:LogicalAnd",
    ),
    (lambda x: tf.cast(x.x, tf.float32), ""),
    (lambda x: tf.cast(3, tf.float32), "Cast/x Cast:Cast"),
    (lambda x: tf.to_float(x.i), "ToFloat:Cast"),
    (lambda x: tf.reduce_sum(x.x), "Const Sum:Sum"),
    (lambda x: tf.reduce_sum(x.x, 1), "Sum/reduction_indices Sum:Sum"),
    (lambda x: tf.reduce_sum(x.u), "Rank:Rank range/start range/delta range:Range Sum:Sum"),
    (
        lambda x: tf.reduce_logsumexp(x.x, 1),
        "ReduceLogSumExp/Max/reduction_indices ReduceLogSumExp/Max:Max "
        "ReduceLogSumExp/IsFinite:IsFinite ReduceLogSumExp/zeros_like "
        "ReduceLogSumExp/Select:Select ReduceLogSumExp/StopGradient:StopGradient "
        "ReduceLogSumExp/Sub:Sub ReduceLogSumExp/Exp:Exp ReduceLogSumExp/Sum/reduction_indices "
        "ReduceLogSumExp/Sum:Sum ReduceLogSumExp/Log:Log ReduceLogSumExp/Shape "
        "ReduceLogSumExp/Reshape:Reshape ReduceLogSumExp/Add:Add",
    ),
    (
        lambda x: tf.count_nonzero(x.x, 1, dtype=tf.int32),
        "count_nonzero/zeros count_nonzero/NotEqual:NotEqual count_nonzero/Cast:Cast "
        "count_nonzero/Sum/reduction_indices count_nonzero/Sum:Sum count_nonzero/Cast_1:Cast",
    ),
    (lambda x: tf.argmax(x.x), "ArgMax/dimension ArgMax:ArgMax"),
    (lambda x: tf.cumsum(x.x, 1, reverse=True), "Cumsum/axis Cumsum:Cumsum"),
    (lambda x: tf.matmul(x.a3, x.a3), "MatMul:BatchMatMulV2"),
    (lambda x: tf.matmul(x.ca, x.ca, adjoint_a=True), "MatMul/Conj:Conj MatMul:MatMul"),
    (lambda x: tf.matmul(x.ua, x.ua), "MatMul:BatchMatMulV2"),
    (
        lambda x: tf.tensordot(x.a3, x.a, [[2], [0]]),
        "Tensordot/transpose/perm Tensordot/transpose:Transpose Tensordot/Reshape/shape "
        "Tensordot/Reshape:Reshape Tensordot/transpose_1/perm Tensordot/transpose_1:Transpose "
        "Tensordot/Reshape_1/shape Tensordot/Reshape_1:Reshape Tensordot/MatMul:MatMul "
        "Tensordot/shape Tensordot:Reshape",
    ),
    (
        lambda x: tf.tensordot(x.a, x.a3, [[0], [1]]),
        "Tensordot/transpose/perm Tensordot/transpose:Transpose Tensordot/Reshape/shape "
        "Tensordot/Reshape:Reshape Tensordot/transpose_1/perm Tensordot/transpose_1:Transpose "
        "Tensordot/Reshape_1/shape Tensordot/Reshape_1:Reshape Tensordot/MatMul:MatMul "
        "Tensordot/shape Tensordot:Reshape",
    ),
    (
        lambda x: tf.norm(x.x, axis=1),
        "norm/mul:Mul norm/Sum/reduction_indices norm/Sum:Sum norm/Sqrt:Sqrt norm/Squeeze:Squeeze",
    ),
    (
        lambda x: tf.norm(x.x, ord=3),
        "norm/Abs:Abs norm/Pow/y norm/Pow:Pow norm/Const norm/Sum:Sum norm/Pow_1/y norm/Pow_1:Pow "
        "norm/Squeeze:Squeeze",
    ),
    (lambda x: tf.add_n([x.x]), ""),
    (lambda x: tf.accumulate_n([x.x, x.y]), "AddN:AddN"),
    (lambda x: tf.scalar_mul(2.0, x.x), "scalar Mul:Mul"),
    (
        lambda x: tf.clip_by_value(x.x, 0.0, 1.0),
        "clip_by_value/Minimum/y clip_by_value/Minimum:Minimum clip_by_value/y clip_by_value:Maximum",
    ),
    (
        lambda x: tf.clip_by_global_norm([x.x, x.y], 1.0),
        "global_norm/L2Loss:L2Loss global_norm/L2Loss_1:L2Loss global_norm/stack:Pack "
        "global_norm/Const global_norm/Sum:Sum global_norm/Const_1 global_norm/mul:Mul "
        "global_norm/global_norm:Sqrt clip_by_global_norm/truediv/x "
        "clip_by_global_norm/truediv:RealDiv clip_by_global_norm/Const "
        "clip_by_global_norm/truediv_1/y clip_by_global_norm/truediv_1:RealDiv "
        "clip_by_global_norm/Minimum:Minimum clip_by_global_norm/mul/x clip_by_global_norm/mul:Mul "
        "clip_by_global_norm/IsFinite:IsFinite clip_by_global_norm/Const_1 "
        "clip_by_global_norm/Select:Select clip_by_global_norm/mul_1:Mul "
        "clip_by_global_norm/clip_by_global_norm/_0:Identity clip_by_global_norm/mul_2:Mul "
        "clip_by_global_norm/clip_by_global_norm/_1:Identity",
    ),
    (
        lambda x: tf.lbeta(x.x),
        "lbeta/Lgamma:Lgamma lbeta/Sum/reduction_indices lbeta/Sum:Sum "
        "lbeta/Sum_1/reduction_indices lbeta/Sum_1:Sum lbeta/Lgamma_1:Lgamma lbeta/sub:Sub",
    ),
    (lambda x: tf.log_sigmoid(x.x), "LogSigmoid/Neg:Neg LogSigmoid/Softplus:Softplus LogSigmoid:Neg"),
]


def operands() -> SimpleNamespace:
    """Placeholders by the names that the cases use."""
    kinds = {name: (tf.float32, [2, 3]) for name in "xy"}
    kinds |= {"i": (tf.int32, [2, 3]), "b": (tf.bool, [2, 3]), "c": (tf.complex64, [2, 3])}
    kinds |= {"a": (tf.float32, [3, 3]), "a3": (tf.float32, [2, 3, 3]), "ca": (tf.complex64, [3, 3])}
    kinds |= {"u": (tf.float32, None), "ua": (tf.float32, None)}
    return SimpleNamespace(**{name: tf.placeholder(*kind, name=name) for name, kind in kinds.items()})


@pytest.mark.parametrize(("function", "expected"), CASES)
def test_added_nodes(graph: tf.Graph, function: Callable[[Any], Any], expected: str) -> None:
    given = operands()
    before = len(graph.get_operations())
    function(given)
    added = graph.get_operations()[before:]
    assert [op.name if op.type == "Const" else f"{op.name}:{op.type}" for op in added] == expected.split()


def test_equality_is_identity() -> None:
    x = tf.constant([1.0])
    y = tf.constant([1.0])
    assert (x == x) is True and (x == y) is False and len({x, y}) == 2


def test_operands_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError):
        tf.constant([1, 2]) + 1.5
    with pytest.raises(TypeError, match="float64"):
        tf.constant([1.0]) + tf.constant([1.0], tf.float64)
    with pytest.raises(TypeError, match="same dtype"):
        tf.truediv(tf.constant(1), tf.constant(1.0))


def test_a_numpy_array_on_the_left_leaves_the_operator_to_the_tensor() -> None:
    total = np.array([1.0, 2.0], np.float32) * tf.constant([3.0, 4.0])
    with tf.Session() as session:
        assert session.run(total).tolist() == [3.0, 8.0]


def test_operators_can_be_given_to_another_class() -> None:
    class Celsius:
        def __init__(self, degrees: float) -> None:
            self.degrees = degrees

    install_operators(Celsius, lambda self: tf.constant(self.degrees))
    with tf.Session() as session:
        results = [Celsius(20.0) + 1.0, 30.0 - Celsius(20.0), -Celsius(3.0), Celsius(4.0) < 5.0]
        assert session.run(results) == [21.0, 10.0, -3.0, True]


def test_named_sums_are_those_of_tensorflow_1_15(graph: tf.Graph) -> None:
    """The operator is AddV2; `tf.add` and what adds by it are Add, which TensorFlow 1.4 knows, too."""
    x = tf.placeholder(tf.float32, [2, 3])
    sums = [
        tf.add(x, 1.0),
        tf.random_normal([2], 1.0),
        tf.random_uniform([2], 1.0, 2.0),
        tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x),
        tf.nn.weighted_cross_entropy_with_logits(labels=x, logits=x, pos_weight=2.0),
        tf.reduce_logsumexp(x, 1, name="whole"),
        tf.train.polynomial_decay(0.1, 1, 10),
    ]
    assert [each.op.type for each in sums] == ["Add"] * len(sums)
    assert sums[5].op.name == "whole/Add" and (x + 1.0).op.type == "AddV2"


@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_of_another_type_is_a_type_error_that_names_the_input(resource: bool) -> None:
    x, wide = tf.ones([2, 2]), tf.Variable(np.ones([2, 2]), use_resource=resource)
    kinds = "type float64 that does not match type float32"
    with pytest.raises(TypeError, match=f"'y' of 'Add.*{kinds} of argument 'x'"):
        x + wide
    with pytest.raises(TypeError, match=f"'b' of 'MatMul'.*{kinds} of argument 'a'"):
        tf.matmul(x, wide)
    for function in tf.stack, lambda values: tf.concat(values, 0):
        for other, type_name in (wide, "float64"), (tf.no_op(), "<NOT CONVERTIBLE TO TENSOR>"):
            with pytest.raises(TypeError, match=rf"types \[float32, {type_name}\] that don't all match"):
                function([x, other])
