"""The sequences of a beam search, followed back from their last step by each beam's parents: GatherTree.

Ids and parents are [time, batch, beams]. A batch's beams are followed from the step before its greatest
length; what comes later, and all that follows a sequence's first end token, is the end token.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

gather_tree_op = op(
    "GatherTree",
    "step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T -> beams: T",
    T=(dtypes.int32,),
)
gather_tree_op.no_gradient()


@gather_tree_op.infer
def _(node: Node) -> Shapes:
    ids, parents = require_rank(node.dims(0), 3), require_rank(node.dims(1), 3)
    require_rank(node.dims(2), 1)
    require_rank(node.dims(3), 0)
    for one, other in zip(ids, parents):
        if None not in (one, other) and one != other:
            raise ValueError(
                f"step_ids and parent_ids must have the same shape, but have {ids} and {parents}"
            )
    return [tuple(other if one is None else one for one, other in zip(ids, parents))]


def _check(ids: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: torch.Tensor) -> None:
    if ids.dim() != 3 or ids.shape != parents.shape:
        raise invalid(
            f"step_ids and parent_ids must be of one shape [time, batch, beams], got {list(ids.shape)} and "
            f"{list(parents.shape)}"
        )
    if lengths.dim() != 1 or lengths.shape[0] != ids.shape[1]:
        raise invalid(f"max_sequence_lengths must be [{ids.shape[1]}], got {list(lengths.shape)}")
    if end.dim() != 0:
        raise invalid(f"end_token must be a scalar, got {list(end.shape)}")


@gather_tree_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        ids: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: torch.Tensor
    ) -> torch.Tensor:
        _check(ids, parents, lengths, end)
        beams, steps = end.expand_as(ids).clone(), ids.shape[0]
        last = lengths.clamp(0, steps)[:, None].to(torch.int64)
        own = torch.arange(ids.shape[2], device=ids.device).expand(ids.shape[1:])
        places = own
        is_wrong = torch.zeros((), dtype=torch.bool, device=ids.device)
        for time in range(steps - 1, -1, -1):
            counts = time < last
            beams[time] = torch.where(counts, ids[time].gather(1, places), end)
            found = parents[time].gather(1, places).to(torch.int64)
            if time:  # the first step's parents are not followed
                is_wrong |= (counts & ((found < 0) | (found >= ids.shape[2]))).any()
            places = torch.where(counts, found.clamp(0, ids.shape[2] - 1), own)
        if is_wrong:
            raise invalid("parent_ids must be between 0 and the number of beams")
        ended = (beams == end).cumsum(0) > 0
        return torch.where(ended, end, beams)

    return run


gather_tree_op.check_complete()
