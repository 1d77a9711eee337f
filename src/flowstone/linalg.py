"""`flowstone.linalg`: matrices."""

from flowstone.ops.clipping import global_norm
from flowstone.ops.constants import eye
from flowstone.ops.diagonals import (
    diag as tensor_diag,
)
from flowstone.ops.diagonals import (
    diag_part as tensor_diag_part,
)
from flowstone.ops.diagonals import (
    matrix_band_part as band_part,
)
from flowstone.ops.diagonals import (
    matrix_diag as diag,
)
from flowstone.ops.diagonals import (
    matrix_diag_part as diag_part,
)
from flowstone.ops.diagonals import (
    matrix_set_diag as set_diag,
)
from flowstone.ops.diagonals import (
    trace,
)
from flowstone.ops.matrices import matmul
from flowstone.ops.neural_net import l2_normalize
from flowstone.ops.rearranging import matrix_transpose
from flowstone.ops.rearranging import matrix_transpose as transpose
from flowstone.ops.special_functions import cross
from flowstone.ops.tensor_contractions import einsum, norm, tensordot
