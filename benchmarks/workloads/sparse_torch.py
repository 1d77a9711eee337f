"""The same of torch's sparse tensors, coalesced, and of its CSR matrices; torch has no sets of rows."""

import numpy as np
import torch
from shapes import SPARSE_COLUMNS, sparse_parts

from measuring import median_seconds, report


def coalesced(seed):
    indices, values, sizes = sparse_parts(seed)
    places = torch.from_numpy(indices.T.copy())
    return torch.sparse_coo_tensor(places, torch.from_numpy(values), tuple(sizes)).coalesce()


def ms(function):
    with torch.no_grad():
        return 1e3 * median_seconds(function)


a, b = coalesced(1), coalesced(2)
report("add", ms(lambda: (a + b).coalesce()), "ms")
report("softmax", ms(lambda: torch.sparse.softmax(a, 1)), "ms")
report("transpose", ms(lambda: a.t().coalesce()), "ms")
for axis in (0, 1):
    report(f"reduce_sum, axis {axis}", ms(lambda d=axis: torch.sparse.sum(a, d).to_dense()), "ms")
report("to_dense", ms(a.to_dense), "ms")
rows = a.to_sparse_csr()
for columns in (1, 64):
    dense = torch.from_numpy(np.random.RandomState(0).randn(SPARSE_COLUMNS, columns).astype(np.float32))
    report(f"matmul, {columns} columns", ms(lambda d=dense: rows @ d), "ms")
