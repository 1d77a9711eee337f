"""What collective operations give: the members' results of the members' values, in one process.

Values are merged in the order of ranks, so that all members get the same bits. Each result is in memory of
its own, on the device of its member.

>>> from flowstone.ops.collectives.offers import Offer
>>> def offer(member, *values):
...     value = torch.tensor(values)
...     return Offer("reduce", 1, 2, 1, member, "n", "float32", tuple(value.shape), "sum", True, value=value)
>>> results_of([offer("/cpu:0", 1.0, 2.0), offer("/cpu:1", 3.0, 6.0)])
[tensor([2., 4.]), tensor([2., 4.])]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.ops.collectives.offers import Offer

__all__ = ["divided", "results_of"]

_MERGES: dict[str, Callable[..., Any]] = {
    "sum": torch.Tensor.add_,
    "product": torch.Tensor.mul_,
    "min": lambda total, value: torch.minimum(total, value, out=total),
    "max": lambda total, value: torch.maximum(total, value, out=total),
}


def results_of(offers: Sequence[Offer]) -> list[torch.Tensor]:
    """The results of complete operations, in the order of the offers, which is that of the ranks."""
    return _RESULTS[offers[0].kind](offers)


def divided(total: torch.Tensor, offer: Offer) -> torch.Tensor:
    """A merged value as it is given out: divided by the number of members, if the operation says so;
    integers are rounded towards zero."""
    if not offer.is_mean:
        return total
    return total.div_(offer.size, rounding_mode=None if total.is_floating_point() else "trunc")


def _merged(offers: Sequence[Offer]) -> torch.Tensor:
    total = offers[0].value.clone(memory_format=torch.contiguous_format)
    merge = _MERGES[offers[0].merge]
    for offer in offers[1:]:
        merge(total, offer.value.to(total.device))
    return divided(total, offers[0])


def _given(values: Sequence[torch.Tensor], offers: Sequence[Offer]) -> list[torch.Tensor]:
    """Each value on its member's device, in memory of its own."""
    return [_own(value, offer.value) for value, offer in zip(values, offers)]


def _own(value: torch.Tensor, like: Any) -> torch.Tensor:
    device = value.device if like is None else like.device
    if value.device != device:
        return value.to(device)
    return value.clone(memory_format=torch.contiguous_format)


def _reduced(offers: Sequence[Offer]) -> list[torch.Tensor]:
    total = _merged(offers)
    return [_own(total, offer.value) for offer in offers[:-1]] + [total.to(offers[-1].value.device)]


def _gathered(offers: Sequence[Offer]) -> list[torch.Tensor]:
    whole = torch.cat([offer.value.to(offers[0].value.device) for offer in offers])
    return _given([whole] * len(offers), offers)


def _broadcast(offers: Sequence[Offer]) -> list[torch.Tensor]:
    (value,) = [offer.value for offer in offers if offer.is_source]
    return _given([value] * len(offers), offers)


def _scattered(offers: Sequence[Offer]) -> list[torch.Tensor]:
    return _given(_merged(offers).chunk(len(offers)), offers)


def _exchanged(offers: Sequence[Offer]) -> list[torch.Tensor]:
    host = offers[0].value.device
    columns = zip(*[offer.value.to(host).chunk(len(offers)) for offer in offers])
    return _given([torch.cat(column) for column in columns], offers)


_RESULTS: dict[str, Callable[[Sequence[Offer]], list[torch.Tensor]]] = {
    "reduce": _reduced,
    "gather": _gathered,
    "broadcast": _broadcast,
    "scatter": _scattered,
    "exchange": _exchanged,
}
