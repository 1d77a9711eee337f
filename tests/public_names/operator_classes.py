"""Calls of the public members of `tf.linalg`'s linear operators, and of its functions."""

from class_calls import ClassCalls, product

MEMBERS = {
    "__init__": "[type(it).__name__, it.name, it.to_dense()]",
    "add_to_tensor": "it.add_to_tensor(tf.ones(it.shape))",
    "assert_non_singular": "after(it.assert_non_singular())",
    "assert_positive_definite": "after(it.assert_positive_definite())",
    "assert_self_adjoint": "after(it.assert_self_adjoint())",
    "batch_shape": "it.batch_shape",
    "batch_shape_tensor": "it.batch_shape_tensor()",
    "determinant": "it.determinant()",
    "diag_part": "it.diag_part()",
    "domain_dimension": "int(it.domain_dimension)",
    "domain_dimension_tensor": "it.domain_dimension_tensor()",
    "dtype": "it.dtype",
    "graph_parents": "len(it.graph_parents)",
    "is_non_singular": "it.is_non_singular",
    "is_positive_definite": "it.is_positive_definite",
    "is_self_adjoint": "it.is_self_adjoint",
    "is_square": "it.is_square",
    "log_abs_determinant": "it.log_abs_determinant()",
    "matmul": "[it.matmul(x), it.matmul(x, adjoint=True, adjoint_arg=True)]",
    "matvec": "[it.matvec(v), it.matvec(v, adjoint=True)]",
    "name": "it.name",
    "range_dimension": "int(it.range_dimension)",
    "range_dimension_tensor": "it.range_dimension_tensor()",
    "shape": "it.shape",
    "shape_tensor": "it.shape_tensor()",
    "solve": "[it.solve(x), it.solve(x, adjoint=True, adjoint_arg=True)]",
    "solvevec": "[it.solvevec(v), it.solvevec(v, adjoint=True)]",
    "tensor_rank": "it.tensor_rank",
    "tensor_rank_tensor": "it.tensor_rank_tensor()",
    "to_dense": "it.to_dense()",
    "trace": "it.trace()",
}


def made_by(call: str, before: str = "") -> str:
    """A program with an operator `it`, a matrix `x`, a vector `v`, and `after`: `v` once an assertion ran."""
    return f"""
la = tf.linalg
x = tf.constant([[1.0, 2.0], [3.0, -1.0]])
v = tf.constant([1.5, -2.0])
def after(assertion):
    with tf.control_dependencies([assertion]):
        return tf.identity(v)
{before}
it = {call}
"""


SCALING = """
class Scaling(la.LinearOperator):
    def __init__(self):
        la.LinearOperator.__init__(self, tf.float32, None, True, True, True, True, 'scaling')
    def _shape(self):
        return tf.TensorShape([2, 2])
    def _shape_tensor(self):
        return tf.constant([2, 2])
    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return 3.0 * (tf.transpose(x) if adjoint_arg else x)
"""
DOWN, MATRIX = "[[2.0, 0.0], [1.0, 4.0]]", "[[[2.0, 1.0], [1.0, 3.0]]]"
DIAGONAL = "la.LinearOperatorDiag([2.0, 3.0], is_positive_definite=True)"
SETUPS = {
    "LinearOperator": made_by("Scaling()", SCALING),
    "LinearOperatorComposition": made_by(
        f"la.LinearOperatorComposition([la.LinearOperatorFullMatrix({MATRIX}), {DIAGONAL}])"
    ),
    "LinearOperatorDiag": made_by(DIAGONAL),
    "LinearOperatorFullMatrix": made_by(f"la.LinearOperatorFullMatrix({MATRIX}, True, True, True)"),
    "LinearOperatorIdentity": made_by("la.LinearOperatorIdentity(2, [1])"),
    "LinearOperatorLowRankUpdate": made_by(
        f"la.LinearOperatorLowRankUpdate({DIAGONAL}, [[1.0], [2.0]], [0.5], is_diag_update_positive=True)"
    ),
    "LinearOperatorLowerTriangular": made_by(f"la.LinearOperatorLowerTriangular({DOWN})"),
    "LinearOperatorScaledIdentity": made_by("la.LinearOperatorScaledIdentity(2, [2.5, 1.0])"),
}
LOW_RANK = "LinearOperatorLowRankUpdate"
SPECIAL = {
    "LinearOperatorComposition.operators": "[each.to_dense() for each in it.operators]",
    "LinearOperatorDiag.diag": "it.diag",
    "LinearOperatorScaledIdentity.multiplier": "it.multiplier",
    f"{LOW_RANK}.base_operator": "it.base_operator.to_dense()",
    f"{LOW_RANK}.diag_operator": "it.diag_operator.to_dense()",
    f"{LOW_RANK}.diag_update": "it.diag_update",
    f"{LOW_RANK}.is_diag_update_positive": "it.is_diag_update_positive",
    f"{LOW_RANK}.u": "it.u",
    f"{LOW_RANK}.v": "it.v",
}
FUNCTIONS = ClassCalls(
    "tf.linalg",
    """
la = tf.linalg
a = tf.constant([[[4.0, 1.0], [1.0, 3.0]], [[2.0, 0.5], [0.5, 1.0]]])
b = tf.constant([[[1.0, 2.0], [3.0, 4.0]], [[-1.0, 0.5], [2.0, 1.0]]])
""",
    {
        "adjoint": "la.adjoint(b)",
        "band_part": "la.band_part(b, 0, -1)",
        "cholesky": "la.cholesky(a)",
        "cholesky_solve": "la.cholesky_solve(la.cholesky(a), b)",
        "det": "la.det(b)",
        "diag": "la.diag([1.0, 2.0])",
        "diag_part": "la.diag_part(b)",
        "eigh": "[la.eigh(a)[0], tf.abs(la.eigh(a)[1])]",
        "eigvalsh": "la.eigvalsh(a)",
        "einsum": "la.einsum('bij,bjk->bik', a, b)",
        "eye": "la.eye(2, 3, [1])",
        "inv": "la.inv(b, adjoint=True)",
        "logdet": "la.logdet(a)",
        "lstsq": "la.lstsq(a, b, 0.5)",
        "norm": "[la.norm(b), la.norm(b, 1, axis=-1, keep_dims=True), la.norm(b, 'fro', axis=[-2, -1])]",
        "qr": "[tf.abs(each) for each in la.qr(b)]",
        "set_diag": "la.set_diag(b, [[7.0, 8.0], [9.0, 10.0]])",
        "slogdet": "list(la.slogdet(b))",
        "solve": "la.solve(b, a, adjoint=True)",
        "svd": "[la.svd(b, compute_uv=False)] + [tf.abs(each) for each in la.svd(b)]",
        "tensordot": "la.tensordot(a, b, [[2], [1]])",
        "trace": "la.trace(b)",
        "transpose": "la.transpose(b)",
        "triangular_solve": "la.triangular_solve(a, b, lower=False, adjoint=True)",
    },
)
TABLES = [*product("tf.linalg", SETUPS, MEMBERS, SPECIAL), FUNCTIONS]
