"""`flowstone.manip`: tensors rearranged."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.arrays.gathering import scatter_nd
from flowstone.ops.arrays.index_tuples import gather_nd
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.rearranging import reverse
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.arrays.space_moves import batch_to_space_nd, space_to_batch_nd

__getattr__, __dir__ = _late_names(globals(), {"flowstone.ops.arrays.searching": "roll"})
