"""Reads a session's ConfigProto; `config` is one, or None for the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework import flags
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.rewriting.passes import with_memory_optimization
from flowstone.runtime.plans.function_calls import compiled_nodes, function_compiler
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process import blocking_threads
from flowstone.runtime.process.device import LOCALHOST, Device, local_devices
from flowstone.runtime.steps.collectives import Collectives
from flowstone.runtime.steps.step import Step

_ON = 1  # RewriterConfig.Toggle


def plan_options(
    config: Any,
    resources: ResourceStore,
    devices: Sequence[Device] | None = None,
    collectives: Collectives | None = None,
) -> PlanOptions:
    """How a session with these resources plans; `devices`: what its steps use (None: as `config` says);
    `collectives`: where its collective operations meet those of others (None: they are the session's own)."""
    devices = session_devices(config) if devices is None else devices
    states: dict[str, Any] = {}
    options = PlanOptions(
        devices,
        {device.name: device.environment(resources, states) for device in devices},
        captures=_captures(config),
        disabled_passes=_disabled_passes(config),
    )
    if config is not None:
        options = options._replace(
            soft_placement=config.allow_soft_placement,
            compresses=config.graph_options.enable_bfloat16_sendrecv,
        )
    compile_function = function_compiler(options)
    if collectives is None:
        collectives = Collectives(LOCALHOST)
    for environment in options.environments.values():
        run = blocking_threads.shared.run
        environment.open_doors(compile_function, compiled_nodes, run, Step, collectives)
    return options


def release_states(options: PlanOptions) -> None:
    """Ends what the session's kernels keep running, such as threads that prefetch."""
    for environment in options.environments.values():
        for state in list(environment.states.values()):
            release = getattr(state, "release", None)
            if release is not None:
                release()


def session_devices(config: Any, task: str = LOCALHOST) -> list[Device]:
    """The devices that steps may use."""
    if config is None:
        return local_devices(task=task)
    return local_devices(config.device_count, config.gpu_options.per_process_gpu_memory_fraction, task)


def _captures(config: Any) -> bool:
    """Whether steps on a GPU are recorded: the options by which TensorFlow compiles a graph's clusters ask
    for it."""
    level = 0 if config is None else config.graph_options.optimizer_options.global_jit_level
    return level > 0 or (level == 0 and flags.CUDA_GRAPHS)


def _disabled_passes(config: Any) -> frozenset[str]:
    """The names of the rewriting passes that are off."""
    disabled = flags.DISABLED_PASSES
    if config is None:
        return disabled
    options = config.graph_options
    if options.optimizer_options.opt_level < 0:  # L0
        disabled |= {"fold_constants", "apply_identities", "merge_common_subexpressions"}
    rewrites = options.rewrite_options
    disabled = with_memory_optimization(disabled, rewrites.memory_optimization)
    if _ON in (rewrites.auto_mixed_precision_mkl, rewrites.auto_mixed_precision_onednn_bfloat16):
        disabled -= {"multiply_in_bfloat16"}
    return disabled
