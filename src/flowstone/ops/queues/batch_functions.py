"""`tf.nondifferentiable_batch_function`: calls of concurrent steps computed as one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.function import Defun
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["nondifferentiable_batch_function"]


def nondifferentiable_batch_function(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    max_enqueued_batches: int = 10,
    autograph: bool = True,
    enable_large_batch_splitting: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for a function of tensors [rows, …] whose results have as many rows.

    Calls that steps make at about the same time are computed together: until a batch has `max_batch_size`
    rows, or `batch_timeout_micros` have passed. `allowed_batch_sizes`: batches are padded to one of these
    sizes, in increasing order, of which the last is `max_batch_size`. `max_enqueued_batches` may wait, of
    `num_batch_threads` that are computed at once. `autograph` is not used. ValueError for arguments that
    are no tensors.
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any) -> Any:
            for each in args:
                if not isinstance(each, Tensor):
                    raise ValueError(
                        "All arguments to functions decorated with `batch_function`  are supposed to be "
                        f"Tensors; found {each!r}."
                    )
            structure: list[Any] = []

            def flat(*tensors: Tensor) -> list[Any]:
                structure.append(function(*tensors))
                return nest.flatten(structure[-1])

            body = Defun(*[each.dtype.base_dtype for each in args])(flat)
            body.add_to_graph(args[0].graph)
            results = F.BatchFunction.several(
                list(args), list(body.captured_inputs), f=body.name,
                num_batch_threads=num_batch_threads, max_batch_size=max_batch_size,
                batch_timeout_micros=batch_timeout_micros, max_enqueued_batches=max_enqueued_batches,
                allowed_batch_sizes=list(allowed_batch_sizes or []),
                enable_large_batch_splitting=enable_large_batch_splitting,
                Tout=[each.type for each in body.definition.signature.output_arg],
            )  # fmt: skip
            return nest.pack_sequence_as(structure[-1], results)

        return decorated

    return decorator
