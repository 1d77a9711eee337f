"""Functions of a graph's library as callables: a plan of its own for each, on the CPU.

A call in a graph is replaced by the function's nodes (`rewriting/functions`). What calls a function once an
element of its input, as datasets do, has a kernel that holds a `FunctionCall` (`framework/kernel.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework.function_library import FunctionBody
from flowstone.framework.kernel import CPU, FunctionCall
from flowstone.runtime import threads
from flowstone.runtime.failures import explain
from flowstone.runtime.plan import Plan, make_plan
from flowstone.runtime.plan_options import PlanOptions


def function_compiler(options: PlanOptions) -> Callable[[FunctionBody], FunctionCall]:
    """What compiles functions for sessions that plan with `options`."""
    host = next(device for device in options.devices if device.device_type == CPU)
    shared = options.environments[host.name]

    def compiled(body: FunctionBody) -> FunctionCall:
        environment = host.environment(shared.resources, {})  # type: ignore[arg-type]
        environment.open_doors(compiled, shared.run_blocking, shared.new_step, shared.collectives)
        own = options._replace(
            devices=[host],
            environments={host.name: environment},
            assigned={},
            soft_placement=True,
            costs=None,
        )
        return _call(make_plan(body.outputs, body.controls, body.inputs, own))

    return compiled


def _call(plan: Plan) -> FunctionCall:
    """A function of the step and the arguments that runs the plan; the results are the caller's own. The
    calling thread is in inference mode, as in a step."""
    function, program = plan.function, plan.program
    copied = [i for i, must_copy in enumerate(program.copied_fetches) if must_copy]

    def call(step: Any, *arguments: Any) -> Sequence[Any]:
        try:
            results = function(step, *arguments) if not plan.one_thread else alone(step, *arguments)
        except Exception as error:
            raise explain(error, program) from None
        if not copied:
            return results  # type: ignore[no-any-return]
        owned = list(results)
        for i in copied:
            owned[i] = _copy(owned[i])
        return owned

    def alone(step: Any, *arguments: Any) -> Any:
        return threads.run_with(1, lambda: function(step, *arguments))

    return call


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value
