"""Products and convolutions of float32 in bfloat16, where the user asks for it.

    %2 = MatMul(%0, %1) : float32[8,4]

becomes

    %2 = Cast(%0) DstT=bfloat16 SrcT=float32 : bfloat16[8,6]
    %3 = Cast(%1) DstT=bfloat16 SrcT=float32 : bfloat16[6,4]
    %4 = MatMul(%2, %3) : bfloat16[8,4]
    %5 = Cast(%4) DstT=float32 SrcT=bfloat16 : float32[8,4]

Gradients' products are nodes like others. Variables, sums, losses and updates stay in float32. Operands and
results are rounded to 8 bits of fraction; sums within a product are float32's. `merge_common_subexpressions`
leaves one Cast of what several products take.
"""

from __future__ import annotations

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.rewriting.patterns import Replacement, rewrite

_PRODUCTS = frozenset(("product", "convolution", "convolution gradient"))


def multiply_in_bfloat16(subgraph: Subgraph) -> None:
    """Has every product and convolution of float32 compute in bfloat16."""

    def cast(x: PlanOutput, dtype: DType, like: PlanNode, word: str) -> PlanNode:
        attributes = {"SrcT": x.dtype.base_dtype, "DstT": dtype, "Truncate": False}
        return subgraph.new_node(registry["Cast"], [x], attributes, like, name=f"{like.name}/{word}")

    def rule(node: PlanNode) -> Replacement | None:
        if node.declaration.multiplies not in _PRODUCTS or node.attributes["T"] is not dtypes.float32:
            return None
        inputs, casts = list(node.inputs), []
        for i, x in enumerate(inputs):
            if x.dtype.base_dtype is dtypes.float32:
                casts.append(cast(x, dtypes.bfloat16, node, f"bfloat16_{i}"))
                inputs[i] = casts[-1].outputs[0]
        attributes = {**node.attributes, "T": dtypes.bfloat16}
        product = subgraph.new_node(node.declaration, inputs, attributes, node)
        result = cast(product.outputs[0], dtypes.float32, node, "float32")
        return Replacement(list(result.outputs), "computes in bfloat16", (*casts, product, result))

    rewrite(subgraph, "multiply_in_bfloat16", rule)
