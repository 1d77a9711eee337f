"""`flowstone.test`: test cases, comparisons, checks of gradients, benchmarks for programs of the library."""

from unittest import mock

from flowstone.gradients.gradient_checker import compute_gradient, compute_gradient_error
from flowstone.testing.benchmark import Benchmark
from flowstone.testing.environment import (
    disable_with_predicate,
    get_temp_dir,
    gpu_device_name,
    is_built_with_cuda,
    is_built_with_gpu_support,
    is_built_with_rocm,
    is_built_with_xla,
    is_gpu_available,
    main,
    test_src_dir_path,
)
from flowstone.testing.graph_comparison import assert_equal_graph_def
from flowstone.testing.local_cluster import create_local_cluster
from flowstone.testing.stubs import StubOutForTesting
from flowstone.testing.targets import (
    benchmark_config,
    is_cpu_target_available,
    with_eager_op_as_function,
)
from flowstone.testing.test_case import TestCase
