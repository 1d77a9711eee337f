"""Flowstone: stateful dataflow graphs, sessions and training, speaking the TensorFlow 1.x Python API.

`import flowstone as tf`. The names here are assembled from the rooms below. Protocol buffers, sessions, the
larger namespaces and what few programs use are imported when they are first asked for.
"""

from importlib import import_module as _import_module

from flowstone.framework.flags import short_spins as _short_spins
from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.framework.process.collector import importing as _importing
from flowstone.framework.process.process_exit import stop_threads_at_exit as _stop_threads_at_exit

with _importing(), _short_spins():  # torch is loaded here
    _stop_threads_at_exit()
    for _room in ("ops", "gradients", "nn"):
        _import_module(f"flowstone.{_room}")

from flowstone import (
    bitwise,
    compat,
    debugging,
    dtypes,
    initializers,
    manip,
    math,
    nn,
    random,
    version,
)
from flowstone.compat.behaviour import *
from flowstone.compat.text import dimension_at_index, dimension_value
from flowstone.framework import errors
from flowstone.framework.errors import OpError
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.graphs.graph import Graph, GraphKeys, Operation
from flowstone.framework.graphs.graph_functions import *
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.framework.process.versions import (
    COMPILER_VERSION,
    GIT_VERSION,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    VERSION,
)
from flowstone.framework.process.versions import COMPILER_VERSION as __compiler_version__
from flowstone.framework.process.versions import GIT_VERSION as __git_version__
from flowstone.framework.process.versions import VERSION as __version__
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor, SparseTensorValue
from flowstone.framework.tensors.scope import get_default_graph, get_default_session, reset_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.dtypes import (
    QUANTIZED_DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import make_ndarray, make_tensor_proto
from flowstone.gradients import *
from flowstone.ops.algebra.diagonals import *
from flowstone.ops.algebra.matrices import *
from flowstone.ops.algebra.tensor_contractions import *
from flowstone.ops.arrays.broadcasting import *
from flowstone.ops.arrays.choice import *
from flowstone.ops.arrays.constants import *
from flowstone.ops.arrays.gathering import *
from flowstone.ops.arrays.grids import *
from flowstone.ops.arrays.identities import *
from flowstone.ops.arrays.image_patches import *
from flowstone.ops.arrays.index_tuples import *
from flowstone.ops.arrays.indexing import *
from flowstone.ops.arrays.joining import *
from flowstone.ops.arrays.masks import *
from flowstone.ops.arrays.packing import *
from flowstone.ops.arrays.padding import *
from flowstone.ops.arrays.rearranging import *
from flowstone.ops.arrays.selection import *
from flowstone.ops.arrays.shapes import *
from flowstone.ops.arrays.slicing import *
from flowstone.ops.arrays.space_moves import *
from flowstone.ops.control.checks import *
from flowstone.ops.control.conditionals import *
from flowstone.ops.control.control_flow import *
from flowstone.ops.control.critical_sections import *
from flowstone.ops.control.functional import *
from flowstone.ops.control.loops import *
from flowstone.ops.control.reporting import *
from flowstone.ops.control.script import *
from flowstone.ops.control.type_checks import *
from flowstone.ops.lists.tensor_array import *
from flowstone.ops.networks.convolution import *
from flowstone.ops.numbers.accumulations import *
from flowstone.ops.numbers.arithmetic import *
from flowstone.ops.numbers.casts import *
from flowstone.ops.numbers.clipping import *
from flowstone.ops.numbers.comparisons import *
from flowstone.ops.numbers.complex_numbers import *
from flowstone.ops.numbers.division import *
from flowstone.ops.numbers.extreme_positions import *
from flowstone.ops.numbers.functions import *
from flowstone.ops.numbers.operators import *
from flowstone.ops.numbers.reductions import *
from flowstone.ops.numbers.segment_reductions import *
from flowstone.ops.numbers.special_functions import *
from flowstone.ops.numbers.sums import *
from flowstone.ops.queues.accumulators import *
from flowstone.ops.queues.queues import *
from flowstone.ops.randomness.random import *
from flowstone.ops.randomness.random_choice import *
from flowstone.ops.readers.files import *
from flowstone.ops.sparse.sparse_placeholders import *
from flowstone.ops.sparse.sparse_segment_reductions import *
from flowstone.ops.sparse.sparse_to_dense import *
from flowstone.ops.variables.assignments import *
from flowstone.ops.variables.initializers import *
from flowstone.ops.variables.partitioned_variables import *
from flowstone.ops.variables.scope_defaults import *
from flowstone.ops.variables.template import *
from flowstone.ops.variables.variable_collections import *
from flowstone.ops.variables.variable_creation import *
from flowstone.ops.variables.variable_scope import *
from flowstone.ops.variables.variables import *

_PROTO = "tensorboard.compat.proto"
__getattr__, __dir__ = _late_names(
    globals(),
    {
        f"{_PROTO}.attr_value_pb2": "AttrValue NameAttrList",
        f"{_PROTO}.config_pb2": "ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions",
        f"{_PROTO}.event_pb2": "Event LogMessage SessionLog",
        f"{_PROTO}.graph_pb2": "GraphDef",
        f"{_PROTO}.meta_graph_pb2": "MetaGraphDef TensorInfo",
        f"{_PROTO}.node_def_pb2": "NodeDef",
        f"{_PROTO}.summary_pb2": "HistogramProto Summary SummaryMetadata",
        "flowstone.client.session": "InteractiveSession Session",  # and all that runs graphs
        "flowstone.data.specs": "OptionalSpec type_spec_from_value",
        "flowstone.framework.process.build_facts": "CXX11_ABI_FLAG CXX_VERSION MONOLITHIC_BUILD",
        "flowstone.framework.functions.init_scope": "init_scope is_symbolic_tensor",
        "flowstone.framework.names.refused_names": "check_pinned"
        " ragged_fill_empty_rows ragged_fill_empty_rows_grad random_index_shuffle wrap_function",
        "flowstone.framework.process.logging": "get_logger",
        "flowstone.framework.declarations.op_packages": "load_file_system_library load_library"
        " load_op_library",
        "flowstone.framework.tensors.type_specs": "IndexedSlicesSpec NoneTensorSpec SparseTensorSpec"
        " TensorSpec TypeSpec",
        "flowstone.functions.traced_functions": "function",
        "flowstone.gradients.gradient_tape": "GradientTape",
        "flowstone.gradients.recomputation": "grad_pass_through recompute_grad",
        "flowstone.gradients.registration": "no_gradient=NotDifferentiable",
        "flowstone.layers.confusion_matrix": "confusion_matrix",
        "flowstone.ops.algebra.cholesky_factors": "cholesky cholesky_solve",
        "flowstone.ops.algebra.eigenvalues": "self_adjoint_eig self_adjoint_eigvals",
        "flowstone.ops.algebra.inverses": "matrix_determinant matrix_inverse",
        "flowstone.ops.algebra.least_squares": "matrix_solve_ls",
        "flowstone.ops.algebra.linear_systems": "matrix_solve matrix_triangular_solve",
        "flowstone.ops.algebra.matrix_functions": "matrix_square_root",
        "flowstone.ops.algebra.orthogonal_factors": "qr",
        "flowstone.ops.algebra.singular_values": "svd",
        "flowstone.ops.arrays.repeating": "repeat",
        "flowstone.ops.arrays.searching": "argsort roll searchsorted sort unravel_index",
        "flowstone.ops.control.indexed_cases": "switch_case",
        "flowstone.ops.control.printing": "print",
        "flowstone.ops.control.process_ops": "timestamp",
        "flowstone.client.eager_functions": "py_function",
        "flowstone.ops.control.session_tensors": "delete_session_tensor get_session_handle"
        " get_session_tensor",
        "flowstone.ops.control.vectorized": "vectorized_map",
        "flowstone.ops.images.volume_patches": "extract_volume_patches",
        "flowstone.ops.lists.tensor_array_spec": "TensorArraySpec",
        "flowstone.ops.lookup.lookup_tables": "initialize_all_tables tables_initializer",
        "flowstone.ops.networks.convolution_by_rank": "conv conv2d_backprop_filter_v2"
        " conv2d_backprop_input_v2",
        "flowstone.ops.numbers.approximate_ranking": "approx_top_k",
        "flowstone.ops.numbers.histograms": "histogram_fixed_width histogram_fixed_width_bins",
        "flowstone.ops.numbers.segment_means": "unsorted_segment_mean unsorted_segment_sqrt_n",
        "flowstone.ops.parsing.csv_records": "decode_csv",
        "flowstone.ops.parsing.features": "FixedLenFeature FixedLenSequenceFeature SparseFeature"
        " VarLenFeature parse_example parse_single_example parse_single_sequence_example",
        "flowstone.ops.parsing.messages": "decode_json_example parse_tensor serialize_tensor",
        "flowstone.ops.parsing.raw_bytes": "decode_compressed decode_raw",
        "flowstone.ops.quantization.arithmetic": "quantized_concat",
        "flowstone.ops.quantization.conversions": "dequantize quantize quantize_v2",
        "flowstone.ops.quantization.fake_quantization": (
            "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
            "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
            "fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient"
        ),
        "flowstone.ops.queues.batch_functions": "nondifferentiable_batch_function",
        "flowstone.ops.readers.file_contents": "read_file write_file",
        "flowstone.ops.readers.readers": "FixedLengthRecordReader IdentityReader LMDBReader ReaderBase"
        " TFRecordReader TextLineReader WholeFileReader",
        "flowstone.ops.ragged.dispatching": "RaggedTensor",
        "flowstone.ops.ragged.ragged_spec": "RaggedTensorSpec",
        "flowstone.ops.signals.fourier_transforms": "fft fft2d fft3d ifft ifft2d ifft3d",
        "flowstone.ops.signals.transforms_over_axes": "fftnd ifftnd irfftnd rfftnd",
        "flowstone.ops.sparse.edit_distances": "edit_distance",
        "flowstone.ops.sparse.sparse_arithmetic": "sparse_add sparse_matmul sparse_maximum sparse_minimum"
        " sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum sparse_reduce_sum_sparse"
        " sparse_softmax sparse_tensor_dense_matmul",
        "flowstone.ops.sparse.sparse_conversions": "deserialize_many_sparse serialize_many_sparse"
        " serialize_sparse sparse_merge sparse_tensor_to_dense sparse_to_indicator",
        "flowstone.ops.sparse.sparse_layout": "sparse_reorder sparse_reset_shape sparse_reshape"
        " sparse_transpose",
        "flowstone.ops.sparse.sparse_selection": "sparse_concat sparse_fill_empty_rows sparse_mask"
        " sparse_retain sparse_slice sparse_split",
        "flowstone.ops.strings.base64_text": "decode_base64 encode_base64",
        "flowstone.ops.strings.hash_buckets": "fingerprint string_to_hash_bucket string_to_hash_bucket_fast "
        "string_to_hash_bucket_strong",
        "flowstone.ops.strings.joining": "reduce_join string_join",
        "flowstone.ops.strings.letters": "string_strip",
        "flowstone.ops.strings.number_texts": "as_string string_to_number",
        "flowstone.ops.strings.regular_expressions": "regex_replace",
        "flowstone.ops.strings.splitting": "string_split",
        "flowstone.ops.strings.substrings": "substr",
        "flowstone.ops.variables.modules": "Module",
        "flowstone.ops.variables.tensor_scatter": "tensor_scatter_add tensor_scatter_max tensor_scatter_min"
        " tensor_scatter_nd_add=tensor_scatter_add tensor_scatter_nd_max=tensor_scatter_max"
        " tensor_scatter_nd_min=tensor_scatter_min tensor_scatter_nd_sub=tensor_scatter_sub"
        " tensor_scatter_nd_update=tensor_scatter_update tensor_scatter_sub tensor_scatter_update",
    },
    "app audio autograph config contrib data distributions estimator feature_column flags gfile graph_util"
    " image io keras linalg logging lookup losses metrics nest profiler python_io pywrap_tensorflow"
    " quantization queue ragged raw_ops resource_loader saved_model sets signal sparse special spectral"
    " strings summary sysconfig test tpu train user_ops xla",
)
