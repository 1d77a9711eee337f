"""`flowstone.sparse`: sparse tensors."""

from flowstone.framework.tensors.composite import SparseTensor
from flowstone.ops.queues.accumulators import SparseConditionalAccumulator
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_add as add,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_maximum as maximum,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_minimum as minimum,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_reduce_max as reduce_max,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_reduce_max_sparse as reduce_max_sparse,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_reduce_sum as reduce_sum,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_reduce_sum_sparse as reduce_sum_sparse,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_softmax as softmax,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_tensor_dense_matmul as matmul,
)
from flowstone.ops.sparse.sparse_arithmetic import (
    sparse_tensor_dense_matmul as sparse_dense_matmul,
)
from flowstone.ops.sparse.sparse_conversions import (
    sparse_eye as eye,
)
from flowstone.ops.sparse.sparse_conversions import (
    sparse_from_dense as from_dense,
)
from flowstone.ops.sparse.sparse_conversions import (
    sparse_merge as merge,
)
from flowstone.ops.sparse.sparse_conversions import (
    sparse_tensor_to_dense as to_dense,
)
from flowstone.ops.sparse.sparse_conversions import (
    sparse_to_indicator as to_indicator,
)
from flowstone.ops.sparse.sparse_counts import (
    sparse_bincount as bincount,
)
from flowstone.ops.sparse.sparse_crosses import (
    sparse_cross as cross,
)
from flowstone.ops.sparse.sparse_crosses import (
    sparse_cross_hashed as cross_hashed,
)
from flowstone.ops.sparse.sparse_layout import (
    sparse_expand_dims as expand_dims,
)
from flowstone.ops.sparse.sparse_layout import (
    sparse_reorder as reorder,
)
from flowstone.ops.sparse.sparse_layout import (
    sparse_reset_shape as reset_shape,
)
from flowstone.ops.sparse.sparse_layout import (
    sparse_reshape as reshape,
)
from flowstone.ops.sparse.sparse_layout import (
    sparse_transpose as transpose,
)
from flowstone.ops.sparse.sparse_placeholders import sparse_placeholder as placeholder
from flowstone.ops.sparse.sparse_segment_reductions import (
    sparse_segment_mean as segment_mean,
)
from flowstone.ops.sparse.sparse_segment_reductions import (
    sparse_segment_sqrt_n as segment_sqrt_n,
)
from flowstone.ops.sparse.sparse_segment_reductions import (
    sparse_segment_sum as segment_sum,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_concat as concat,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_fill_empty_rows as fill_empty_rows,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_mask as mask,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_retain as retain,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_slice as slice,
)
from flowstone.ops.sparse.sparse_selection import (
    sparse_split as split,
)
