"""`flowstone.config`: choices of the process: what sessions without a ConfigProto take, whether they change
its settings (`tune_process`), how exactly GPUs multiply float32, and whether first runs compute as later ones
do (`experimental`).
"""

from types import SimpleNamespace as _SimpleNamespace

from flowstone.client import process_settings as _settings
from flowstone.client.process_settings import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    experimental_list_devices,
    functions_run_eagerly,
    get_logical_device_configuration,
    get_soft_device_placement,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_soft_device_placement,
    set_visible_devices,
)
from flowstone.client.process_settings import functions_run_eagerly as experimental_functions_run_eagerly
from flowstone.framework.names.refused_names import (
    experimental_connect_to_cluster,
    experimental_connect_to_host,
    experimental_run_functions_eagerly,
    run_functions_eagerly,
)
from flowstone.runtime.process.determinism import enable_op_determinism
from flowstone.runtime.process.precision import (
    enable_tensor_float_32_execution,
    tensor_float_32_execution_enabled,
)
from flowstone.runtime.process.process import tune_process

experimental = _SimpleNamespace(
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    enable_op_determinism=enable_op_determinism,
    enable_tensor_float_32_execution=enable_tensor_float_32_execution,
    get_device_policy=_settings.get_device_policy,
    get_memory_growth=_settings.get_memory_growth,
    get_synchronous_execution=_settings.get_synchronous_execution,
    get_virtual_device_configuration=get_logical_device_configuration,
    get_visible_devices=get_visible_devices,
    list_logical_devices=list_logical_devices,
    list_physical_devices=list_physical_devices,
    set_device_policy=_settings.set_device_policy,
    set_memory_growth=_settings.set_memory_growth,
    set_synchronous_execution=_settings.set_synchronous_execution,
    set_virtual_device_configuration=set_logical_device_configuration,
    set_visible_devices=set_visible_devices,
    tensor_float_32_execution_enabled=tensor_float_32_execution_enabled,
)
"""The functions of this name in TensorFlow, where 1.15 has those of devices."""
optimizer = _SimpleNamespace(
    get_experimental_options=_settings.get_experimental_options,
    get_jit=_settings.get_jit,
    set_experimental_options=_settings.set_experimental_options,
    set_jit=_settings.set_jit,
)
"""What is rewritten, and whether steps on a GPU are recorded."""
threading = _SimpleNamespace(
    get_inter_op_parallelism_threads=_settings.get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads=_settings.get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads=_settings.set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads=_settings.set_intra_op_parallelism_threads,
)
"""How many threads work."""
