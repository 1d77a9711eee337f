"""Every differentiable op's gradient against difference quotients, on its first small case of the op table.

Cases are taken in float64 (made so where the table has float32 alone), or complex128 for ops of complex
numbers. An op is named below, with the reason, where a difference quotient says nothing about it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import op_cases
from flowstone.framework.declarations.operation import registry
from flowstone.gradients.gradient_checker import compute_gradient
from op_cases import Case, Input, Listed, Spec

LARGEST = 128  # elements of an input: each takes two steps
WIDER = {"float32": "float64", "complex64": "complex128"}
_CHOSEN = "tests/gradients/test_gradient_computation.py differentiates what is chosen"
_VARIABLE = "reads a variable; tests/gradients/test_gradient_computation.py"
SKIPPED = {
    **dict.fromkeys(
        ("NcclAllReduce", "NcclBroadcast", "NcclReduce"),
        "of several devices; tests/contrib/nccl",
    ),
    **dict.fromkeys(
        ("RaggedTensorFromVariant", "RaggedTensorToVariant"),
        "of variants; tests/ops/ragged/test_ragged_variants.py",
    ),
    "EagerPyFunc": "a function of Python's; tests/client/test_eager_functions.py",
    "CudnnRNN": "no case, for the oracle has none; tests/ops/networks/test_cudnn_rnn.py",
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
        "takes what its forward op keeps; tests/ops/networks/test_normalization_gradients.py",
    ),
    "RefIdentity": "of a reference; tests/ops/variables/test_references.py",
    **dict.fromkeys(
        (
            "Case",
            "If",
            "PartitionedCall",
            "StatefulPartitionedCall",
            "StatelessCase",
            "StatelessIf",
            "StatelessWhile",
            "SymbolicGradient",
            "While",
        ),
        "calls functions; tests/ops/control/test_functions.py",
    ),
    **dict.fromkeys(
        (
            f"TensorArray{kind}{generation}"
            for kind in ("Concat", "Gather", "Read", "Scatter", "Split", "Write")
            for generation in ("", "V2", "V3")
        ),
        "of an array; tests/ops/lists/test_tensor_array.py",
    ),
    **dict.fromkeys(
        (
            f"TensorList{kind}"
            for kind in (
                "Concat",
                "ConcatV2",
                "FromTensor",
                "Gather",
                "GetItem",
                "PopBack",
                "PushBack",
                "Resize",
                "Scatter",
                "ScatterV2",
                "ScatterIntoExistingList",
                "SetItem",
                "Split",
                "Stack",
            )
        ),
        "of a list; tests/ops/lists/test_tensor_lists.py",
    ),
    **dict.fromkeys(
        (
            "CropAndResize",
            "ImageProjectiveTransformV2",
            "ImageProjectiveTransformV3",
            "ResizeBicubic",
            "ScaleAndTranslate",
        ),
        "its result is float32 alone; tests/ops/test_table.py has TensorFlow's gradients",
    ),
    "ExtractVolumePatches": "tests/ops/images/test_volume_patches.py",
    **dict.fromkeys(
        (
            "FakeQuantWithMinMaxArgs",
            "FakeQuantWithMinMaxVars",
            "FakeQuantWithMinMaxVarsPerChannel",
            "QuantizeAndDequantize",
            "QuantizeAndDequantizeV2",
            "QuantizeAndDequantizeV3",
            "QuantizeAndDequantizeV4",
        ),
        "steps, whose gradient is that of the numbers before; tests/ops/test_table.py has TensorFlow's",
    ),
    **dict.fromkeys(
        ("GRUBlockCell", "LSTMBlockCell"),
        "of float32 alone; tests/contrib/rnn has TensorFlow's gradients",
    ),
    **dict.fromkeys(
        ("BlockLSTM", "BlockLSTMV2", "CTCLossV2", "SparseMatMul"),
        "of float32 alone; tests/ops/test_table.py has TensorFlow's gradients",
    ),
    **dict.fromkeys(
        ("MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3"),
        "none flows to the padding, as in TensorFlow; tests/ops/test_table.py has its gradients",
    ),
    "BatchNormWithGlobalNormalization": "of old graphs alone; its own test has difference quotients",
    "CTCLoss": "its second output is a gradient, through which none flows",
    "Cholesky": "of symmetric matrices, whose elements differ two by two",
    "FractionalAvgPool": "draws its windows; tests/ops/networks/test_fractional_pooling.py",
    "FractionalMaxPool": "draws its windows; tests/ops/networks/test_fractional_pooling.py",
    "MatrixExponential": "tests/ops/algebra/test_matrix_functions.py",
    "MatrixSolveLs": "its second input is a number that a plan knows",
    "NextAfter": "a difference quotient steps over the next number",
    "ArgMax": "gives integers",
    "ArgMin": "gives integers",
    "DebugGradientIdentity": "for debuggers",
    "Merge": _CHOSEN,
    "PreventGradient": "its gradient is an error",
    "Print": "passes its input on; tests/ops/control/test_reporting.py",
    "RandomGamma": "draws anew in every step",
    "StatelessRandomGammaV2": "its samples jump; tests/ops/tables/stateless_rejection.py",
    "StatelessRandomGammaV3": "its samples jump; tests/ops/tables/stateless_rejection.py",
    "ReadVariableOp": _VARIABLE,
    "RefMerge": _CHOSEN,
    "RefSwitch": _CHOSEN,
    "ResourceGather": _VARIABLE,
    "ResourceGatherNd": _VARIABLE,
    "Switch": _CHOSEN,
    "TopK": "the table has TopKV2, which shares its gradient",
    "TruncateDiv": "the table has integers alone",
}
# Positions of inputs by which TensorFlow gives zeros or nothing, or what holds for special values only.
_ORIGINAL = (("0", "1"), "the places of maxima are taken as given")
NOT_CHECKED = {
    "Betainc": (("0", "1"), "TensorFlow has it by x alone"),
    "MaxPool3DGrad": _ORIGINAL,
    "MaxPool3DGradGrad": _ORIGINAL,
    "MaxPoolGrad": _ORIGINAL,
    "MaxPoolGradGrad": _ORIGINAL,
    "MaxPoolGradV2": _ORIGINAL,
    "PadV2": (("2",), "TensorFlow has none by the padding value"),
    "Polygamma": (("0",), "TensorFlow has it by x alone"),
    "SoftmaxCrossEntropyWithLogits": (("0",), "by the formula, labels of each row sum to one"),
    "Zeta": (("0",), "TensorFlow has it by q alone"),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        (("3", "4"), "TensorFlow has none by the running moments"),
    ),
}
# Ops of float32 alone, whose quotients need longer steps and agree less well.
SINGLE = (
    "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "LRN", "MaxPool3D", "MaxPool3DGrad",
    "MaxPool3DGradGrad", "ResizeBilinear",
)  # fmt: skip
# Ops whose other outputs TensorFlow's gradient takes to be for its own use.
FIRST_OUTPUT = (*SINGLE, "SoftmaxCrossEntropyWithLogits")


def wide(case: Case) -> Case:
    """The case in double precision, with the same values as far as its own type holds them."""
    attributes = {
        key: WIDER.get(value, value) if isinstance(value, str) else value
        for key, value in case.attributes.items()
    }
    if case.op in SINGLE:
        return case
    specs = tuple(
        Listed(map(_wide, spec)) if isinstance(spec, Listed) else _wide(spec) for spec in case.specs
    )
    dtype = WIDER.get(case.dtype, case.dtype)
    return dataclasses.replace(case, dtype=dtype, specs=specs, attributes=attributes)


def _wide(spec: Spec) -> Spec:
    return dataclasses.replace(spec, dtype=WIDER.get(spec.dtype, spec.dtype)) if spec.dtype else spec


def positions(case: Case) -> list[str]:
    """The inputs to differentiate by: "1", or "1.0" in a list argument."""
    found = []
    for at, one in enumerate(case.inputs()):
        parts = (
            [(f"{at}.{i}", part) for i, part in enumerate(one)] if isinstance(one, list) else [(str(at), one)]
        )
        if any(part.role != "tensor" for _, part in parts):
            return []
        found += [key for key, part in parts if is_wide(part, case.op) and 0 < part.value.size <= LARGEST]
    return [key for key in found if key not in NOT_CHECKED.get(case.op, ((), ""))[0]]


def is_wide(one: Input, op: str) -> bool:
    return one.dtype in (("float32",) if op in SINGLE else WIDER.values())


def choose() -> dict[str, Case]:
    """By op with a gradient, its first case of an order that prefers float64."""
    found: dict[str, tuple[int, Case]] = {}
    order = ["float64", "float32", "complex128", "complex64"]
    for family in op_cases.families():
        for case in op_cases.load(family):
            declared = registry.get(case.op)
            if declared is None or declared.gradient_kind != "function" or case.op in SKIPPED:
                continue
            if case.error is not None or case.gradient is False or case.dtype not in order:
                continue
            rank = order.index(case.dtype)
            if (case.op not in found or rank < found[case.op][0]) and positions(wide(case)):
                found[case.op] = rank, wide(case)
    return {op: case for op, (_, case) in found.items()}


CASES = choose()


@pytest.mark.parametrize("op", CASES)
def test_gradient(op: str) -> None:
    case = CASES[op]
    with tf.Graph().as_default(), tf.Session():
        given: dict[str, Any] = {}
        arguments = []
        for at, one in enumerate(case.inputs()):
            if isinstance(one, list):
                arguments.append(
                    [given.setdefault(f"{at}.{i}", constant(part)) for i, part in enumerate(one)]
                )
            else:
                arguments.append(given.setdefault(str(at), constant(one)))
        result = registry[op](*arguments, **attributes(case))
        while isinstance(result, (list, tuple)):
            result = result[0]
        counting = result.op.outputs[:1] if op in FIRST_OUTPUT else result.op.outputs
        wanted = [y for y in counting if is_differentiable(y, op)]
        assert wanted
        for output in wanted:
            for key in positions(case):
                check(given[key], output, f"{op}: {output.name} by input {key}")


def constant(one: Input) -> Any:
    return tf.constant(one.value, tf.as_dtype(one.dtype))


def is_differentiable(output: Any, op: str) -> bool:
    return output.dtype in ((tf.float32,) if op in SINGLE else (tf.float64, tf.complex128))


def attributes(case: Case) -> dict[str, Any]:
    types = op_cases.NUMPY_DTYPES
    return {
        key: tf.as_dtype(value) if isinstance(value, str) and value in types else value
        for key, value in case.attributes.items()
    }


def check(x: Any, y: Any, what: str) -> None:
    """The Jacobians of `y` by `x` agree."""
    delta, rtol = (1e-2, 1e-3) if y.dtype is tf.float32 else (1e-5, 1e-6)
    start, end = tf.get_default_session().run([x, y])
    formula, quotient = compute_gradient(x, start.shape, y, end.shape, x_init_value=start, delta=delta)
    scale = max(1.0, np.abs(formula).max(initial=0.0))
    np.testing.assert_allclose(formula, quotient, rtol=rtol, atol=rtol / 10 * scale, err_msg=what)


def test_every_op_is_checked_or_says_why_not() -> None:
    """An op with a gradient has a case, or a reason; no reason outlives its need."""
    differentiable = {name for name in registry if registry[name].gradient_kind == "function"}
    assert sorted(differentiable - CASES.keys() - SKIPPED.keys()) == []
    assert sorted(SKIPPED.keys() - differentiable) == []
    assert sorted(NOT_CHECKED.keys() - CASES.keys()) == []
