"""`flowstone.config`: choices of the process: whether sessions change its settings (`tune_process`), and how
exactly GPUs multiply float32 (`experimental`).
"""

from types import SimpleNamespace as _SimpleNamespace

from flowstone.runtime.precision import enable_tensor_float_32_execution, tensor_float_32_execution_enabled
from flowstone.runtime.process import tune_process

experimental = _SimpleNamespace(
    enable_tensor_float_32_execution=enable_tensor_float_32_execution,
    tensor_float_32_execution_enabled=tensor_float_32_execution_enabled,
)
"""The functions of this name in TensorFlow."""
