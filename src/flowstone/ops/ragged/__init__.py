"""Ragged tensors: rows of different lengths, as one tensor of all values and where each row ends.

| file | what is in it |
| --- | --- |
| `ragged_tensor` | `RaggedTensor`: made from its parts, and asked for them |
| `ragged_values` | values outside the graph, constants and placeholders |
| `row_layouts` | lengths, row numbers and splits, made from each other |
| `conversions` | to and from dense and sparse tensors |
| `indexing` | ``ragged[...]`` |
| `functions` | gather, concat, stack, tile, masks and ranges |
| `ragged_reductions` | sums, means … over one or several axes |
| `elementwise` | functions of all values, one by one; operators |
| `ragged_rows`, `ragged_to_dense`, `ragged_crosses` … | the ops of these, as GraphDefs have them |
| `dispatching` | which public function does what with a ragged argument |
"""
