"""`flowstone.linalg`: matrices."""

from flowstone.ops.algebra.diagonals import (
    diag as tensor_diag,
)
from flowstone.ops.algebra.diagonals import (
    diag_part as tensor_diag_part,
)
from flowstone.ops.algebra.diagonals import (
    matrix_band_part as band_part,
)
from flowstone.ops.algebra.diagonals import (
    matrix_diag as diag,
)
from flowstone.ops.algebra.diagonals import (
    matrix_diag_part as diag_part,
)
from flowstone.ops.algebra.diagonals import (
    matrix_set_diag as set_diag,
)
from flowstone.ops.algebra.diagonals import (
    trace,
)
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.algebra.tensor_contractions import einsum, norm, tensordot
from flowstone.ops.arrays.constants import eye
from flowstone.ops.arrays.rearranging import matrix_transpose
from flowstone.ops.arrays.rearranging import matrix_transpose as transpose
from flowstone.ops.networks.neural_net import l2_normalize
from flowstone.ops.numbers.clipping import global_norm
from flowstone.ops.numbers.special_functions import cross
