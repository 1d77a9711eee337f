"""What a unit costs in the executor: chained conds whose Switches and Merges are units of their own.

Flowstone only: inside one device conds are compiled, so the executor is asked for by name. The kernels' own
time, that of the same nodes called one after the other, is subtracted.
"""

import torch
from shapes import CONDITIONALS
from tf1 import tf

from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.executor import SEGMENT
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.steps.step import Step
from measuring import median_seconds, report

start = tf.placeholder(tf.float32, [])
z = start
for _ in range(CONDITIONALS):
    z = tf.cond(z > 0.0, lambda z=z: z - 1.0, lambda z=z: z + 1.0)
program = UnitProgram.compiled(run_passes(prune([z], [], [start]), EVERY), Environment(), dynamic=True)
value, one = torch.tensor(1.0), torch.tensor(1.0)


def step():
    with torch.inference_mode():
        return program.function(Step(), value)


def kernels():
    with torch.inference_mode():
        x = value
        for _ in range(CONDITIONALS):
            x = torch.sub(x, one) if x.item() > 0.0 else torch.add(x, one)
        return x


units = len(program.graph.units)
segments = sum(unit.kind == SEGMENT for unit in program.graph.units)
whole, alone = median_seconds(step, 20), median_seconds(kernels, 20)
report(f"executor, a unit of {units} ({segments} segments)", (whole - alone) / units * 1e6, "us")
