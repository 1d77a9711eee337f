"""What `tf.config` sets for the process: sessions that are made without a ConfigProto take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.types.tensor_proto import messages
from flowstone.runtime.process.device import LOCALHOST, Device, local_devices

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "process_config",
    "session_config",
]

_config: list[Any] = []  # the ConfigProto, once something is set
_hidden: set[str] = set()  # names of physical devices
_logical: dict[str, list[Any]] = {}  # by names of physical devices


class PhysicalDevice(NamedTuple):
    """A processor of this machine: `name`, "/physical_device:CPU:0", and `device_type`."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device of sessions: `name`, "/device:CPU:0", and `device_type`."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """A part of a physical device: `memory_limit` in megabytes, of a GPU; the others are not used."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


def session_config(config: Any) -> Any:
    """The ConfigProto that a session takes: that given, else the process's; None if nothing is set."""
    return _config[0] if config is None and _config else config


def process_config() -> Any:
    """The process's ConfigProto, to be read and changed."""
    if not _config:
        _config.append(messages("config_pb2").ConfigProto())
    return _config[0]


def read_config() -> Any:
    """The process's ConfigProto, to be read only."""
    return _config[0] if _config else messages("config_pb2").ConfigProto()


# ---- devices


def _physical(device: Device) -> PhysicalDevice:
    return PhysicalDevice(f"/physical_device:{device.device_type}:{device.number}", device.device_type)


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The processors of this machine, of one type or all."""
    found = [_physical(device) for device in local_devices()]
    return [each for each in found if device_type in (None, each.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that a session has which is made now without a ConfigProto, of one type or all."""
    config = read_config()
    found = [
        LogicalDevice(f"/device:{device.device_type}:{device.number}", device.device_type)
        for device in local_devices(config.device_count)
    ]
    return [each for each in found if device_type in (None, each.device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The processors that sessions use, of one type or all."""
    return [each for each in list_physical_devices(device_type) if each.name not in _hidden]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Makes sessions use these processors only, of one type or all; the first ones of each type.

    ValueError for what is no physical device, another type, no CPU, or a GPU without those before it.
    """
    wanted = (
        list(devices)
        if isinstance(devices, Iterable) and not isinstance(devices, PhysicalDevice)
        else [devices]
    )
    known = list_physical_devices(device_type)
    for each in wanted:
        if each not in known:
            raise ValueError(f"Unrecognized device: {each!r}")
    for kind in {each.device_type for each in known}:
        names = [each.name for each in known if each.device_type == kind]
        chosen = {each.name for each in wanted if each.device_type == kind}
        if chosen != set(names[: len(chosen)]):
            raise ValueError(
                f"sessions use the first devices of a type: {names[: len(chosen)]}, not {sorted(chosen)}"
            )
        if kind == CPU and not chosen:
            raise ValueError("a session needs a CPU")
        if kind != CPU:
            process_config().device_count[kind] = len(chosen)
        _hidden.difference_update(names)
        _hidden.update(set(names) - chosen)


def get_logical_device_configuration(device: PhysicalDevice) -> list[Any] | None:
    """What was set, or None. ValueError for what is no physical device."""
    _check_known(device)
    return _logical.get(device.name)


def set_logical_device_configuration(device: PhysicalDevice, logical_devices: Any) -> None:
    """Makes sessions divide a processor: a CPU into any number of devices, a GPU into one with its limit.

    ValueError for what is no physical device, a CPU with a limit, or a GPU in parts.
    """
    _check_known(device)
    parts = list(logical_devices)
    if device.device_type == CPU:
        if not parts or any(part.memory_limit is not None for part in parts):
            raise ValueError("a CPU is divided into one or more devices without memory_limit")
        process_config().device_count[CPU] = len(parts)
    else:
        _limit(device, parts)
    _logical[device.name] = parts


def _limit(device: PhysicalDevice, parts: list[Any]) -> None:
    if len(parts) != 1 or device.device_type != GPU:
        raise ValueError(f"{device.name} cannot be divided into {len(parts)} devices, only limited")
    if parts[0].memory_limit is not None:
        whole = next(each for each in local_devices() if _physical(each) == device).memory_limit_bytes
        process_config().gpu_options.per_process_gpu_memory_fraction = parts[0].memory_limit * 2**20 / whole


def _check_known(device: Any) -> None:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Whether a GPU's memory is taken when it is needed: always. ValueError for what is no physical
    device.
    """
    _check_known(device)
    return device.device_type == GPU


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Changes nothing: a GPU's memory is taken when it is needed. ValueError for what is no GPU."""
    _check_known(device)
    if device.device_type != GPU:
        raise ValueError("Cannot set memory growth on non-GPU devices")


# ---- placement, threads, rewriting


def get_soft_device_placement() -> bool:
    """Whether an operation without a kernel on its device is put on another."""
    return bool(read_config().allow_soft_placement)


def set_soft_device_placement(enabled: bool) -> None:
    """Sets it for sessions made from now on without a ConfigProto."""
    process_config().allow_soft_placement = enabled


def get_log_device_placement() -> bool:
    """Whether sessions log on which device operations are put."""
    return bool(read_config().log_device_placement)


def set_log_device_placement(enabled: bool) -> None:
    """Sets it for sessions made from now on without a ConfigProto."""
    process_config().log_device_placement = enabled


def get_inter_op_parallelism_threads() -> int:
    """How many operations may run at once; 0: as many as is best."""
    return int(read_config().inter_op_parallelism_threads)


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Sets it for sessions made from now on without a ConfigProto."""
    process_config().inter_op_parallelism_threads = num_threads


def get_intra_op_parallelism_threads() -> int:
    """How many threads one operation may use; 0: as many as is best."""
    return int(read_config().intra_op_parallelism_threads)


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets it for sessions made from now on without a ConfigProto."""
    process_config().intra_op_parallelism_threads = num_threads


_BOOLEANS = ("disable_meta_optimizer", "disable_model_pruning")
_TOGGLES = (
    "arithmetic_optimization", "auto_mixed_precision", "auto_parallel", "constant_folding", "debug_stripper",
    "dependency_optimization", "function_optimization", "implementation_selector", "layout_optimizer",
    "loop_optimization", "pin_to_host_optimization", "remapping", "scoped_allocator_optimization",
    "shape_optimization",
)  # fmt: skip
_ON, _OFF = 1, 2  # RewriterConfig.Toggle


def get_experimental_options() -> dict[str, bool]:
    """The rewriting options that are set, by name, and the two that switch all of it off."""
    rewrites = read_config().graph_options.rewrite_options
    found = {name: bool(getattr(rewrites, name)) for name in _BOOLEANS}
    for name in _TOGGLES:
        toggle = rewrites.auto_parallel.enable if name == "auto_parallel" else getattr(rewrites, name)
        if toggle:
            found[name] = toggle == _ON
    return found


def set_experimental_options(options: Mapping[str, bool]) -> None:
    """Sets rewriting options by name, for sessions made from now on without a ConfigProto; others are passed
    over.
    """
    rewrites = process_config().graph_options.rewrite_options
    for name, value in options.items():
        if name in _BOOLEANS:
            setattr(rewrites, name, value)
        elif name == "auto_parallel":
            rewrites.auto_parallel.enable = value
        elif name in _TOGGLES:
            setattr(rewrites, name, _ON if value else _OFF)


def get_jit() -> str:
    """The text "autoclustering" if steps on a GPU are recorded and repeated as one launch, else ""."""
    level = read_config().graph_options.optimizer_options.global_jit_level
    return "autoclustering" if level > 0 else ""


def set_jit(enabled: Any) -> None:
    """Sets it, True or "autoclustering", for sessions made from now on without a ConfigProto."""
    process_config().graph_options.optimizer_options.global_jit_level = int(
        enabled in (True, "autoclustering")
    )


# ---- of eager execution


def experimental_list_devices() -> list[str]:
    """The names of the devices that a session has which is made now without a ConfigProto."""
    return [LOCALHOST + each.name for each in list_logical_devices()]


def get_synchronous_execution() -> bool:
    """True: a session's `run` returns when the step is done."""
    return True


def set_synchronous_execution(enable: bool) -> None:
    """Changes nothing: it is of eager execution."""


def get_device_policy() -> str:
    """The text "silent": steps copy values to the devices that need them."""
    return "silent"


def set_device_policy(device_policy: str | None) -> None:
    """Changes nothing: it is of eager execution. ValueError for a policy that there is not."""
    if device_policy not in (None, "silent", "silent_for_int32", "warn", "explicit"):
        raise ValueError(f"Not a valid device policy: {device_policy!r}")


def functions_run_eagerly() -> bool:
    """False: functions add to the graph."""
    return False
