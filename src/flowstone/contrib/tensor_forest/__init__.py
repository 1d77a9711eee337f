"""`tf.contrib.tensor_forest`: random forests that learn from a stream of batches.

`tensor_forest` has the graphs, `forest_params` how a forest is described, `data_ops` what its examples are,
`model_ops` and `stats_ops` the trees and the statistics of their leaves; `client` has estimators.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {}, "client")
