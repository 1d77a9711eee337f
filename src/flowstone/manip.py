"""`flowstone.manip`: tensors rearranged."""

from flowstone.ops.gathering import gather_nd, scatter_nd
from flowstone.ops.padding import tile
from flowstone.ops.rearranging import reverse
from flowstone.ops.shapes import reshape
from flowstone.ops.space_moves import batch_to_space_nd, space_to_batch_nd
