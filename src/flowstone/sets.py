"""`flowstone.sets`: sets in the last dimension of dense and sparse tensors."""

from flowstone.ops.sparse.sets import (
    set_difference,
    set_intersection,
    set_size,
    set_union,
)
from flowstone.ops.sparse.sets import (
    set_difference as difference,
)
from flowstone.ops.sparse.sets import (
    set_intersection as intersection,
)
from flowstone.ops.sparse.sets import (
    set_size as size,
)
from flowstone.ops.sparse.sets import (
    set_union as union,
)
