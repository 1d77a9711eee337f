"""Calls of the functions of `tf` on matrices and spectra."""

from class_calls import ClassCalls

VALUES = """
m = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 5.0]], tf.float64)
w = tf.constant([[2.0, 1.0, 3.0], [7.0, 4.0, -1.0], [5.0, 6.0, 3.0]], tf.float64)
t = tf.constant([[1.0, 0.5], [-2.0, 3.0], [4.0, 1.0]], tf.float64)
z = tf.constant([[1 + 2j, 3 - 1j], [0.5j, 2.0]], tf.complex64)
signal = tf.reshape(tf.complex(tf.range(8.0), tf.range(8.0, 0.0, -1.0)), [2, 2, 2])
def sizes(parts):
    return [tf.abs(part) for part in parts]
"""
CALLS = {
    "cholesky": "tf.cholesky(m, 'a')",
    "cholesky_solve": "tf.cholesky_solve(tf.cholesky(m), t, 'a')",
    "cross": "tf.cross(m, w, 'a')",
    "diag": "[tf.diag([1, 2], 'a'), tf.diag([[1.0, 2.0]])]",
    "diag_part": "[tf.diag_part(w, 'a'), tf.diag_part(tf.reshape(tf.range(16), [2, 2, 2, 2]))]",
    "einsum": "[tf.einsum('ij,jk->ki', w, t), tf.einsum('ij,ij->', t, t)]",
    "eye": "[tf.eye(2, 3, [2], tf.int32, 'a'), tf.eye(2), tf.eye(2, num_columns=1)]",
    "fft": "tf.fft(signal, 'a')",
    "fft2d": "tf.fft2d(signal, 'a')",
    "fft3d": "tf.fft3d(signal, 'a')",
    "ifft": "tf.ifft(signal, 'a')",
    "ifft2d": "tf.ifft2d(signal, 'a')",
    "ifft3d": "tf.ifft3d(signal, 'a')",
    "matmul": (
        "[tf.matmul(t, w, True, name='a'), tf.matmul(w, t, False, False, True), tf.matmul(w, w,"
        " transpose_b=True),"
        " tf.matmul(z, z, adjoint_b=True), tf.matmul(tf.to_float(w), tf.to_float(t), a_is_sparse=True,"
        " b_is_sparse=True)]"
    ),
    "matrix_band_part": "[tf.matrix_band_part(w, 1, 0, 'a'), tf.matrix_band_part(w, -1, 1)]",
    "matrix_determinant": "tf.matrix_determinant(w, 'a')",
    "matrix_diag": "tf.matrix_diag(t, 'a')",
    "matrix_diag_part": "[tf.matrix_diag_part(t, 'a'), tf.matrix_diag_part(w)]",
    "matrix_inverse": "[tf.matrix_inverse(w, True, 'a'), tf.matrix_inverse(w)]",
    "matrix_set_diag": "tf.matrix_set_diag(t, tf.constant([8.0, 9.0], tf.float64), 'a')",
    "matrix_solve": "[tf.matrix_solve(w, t, True, 'a'), tf.matrix_solve(w, t)]",
    "matrix_solve_ls": "[tf.matrix_solve_ls(t, w, 0.5, True, 'a'), tf.matrix_solve_ls(t, w, 0.0, False)]",
    "matrix_transpose": "[tf.matrix_transpose(z, 'a', True), tf.matrix_transpose(z), tf.matrix_transpose(t)]",
    "matrix_triangular_solve": (
        "[tf.matrix_triangular_solve(w, t, False, True, 'a'), tf.matrix_triangular_solve(w, t)]"
    ),
    "qr": "[sizes(tf.qr(t, True, 'a')[1:]), sizes(tf.qr(t))]",
    "self_adjoint_eig": "[tf.self_adjoint_eig(m, 'a')[0], sizes(tf.self_adjoint_eig(m)[1:])]",
    "self_adjoint_eigvals": "tf.self_adjoint_eigvals(m, 'a')",
    "sparse_matmul": (
        "[tf.sparse_matmul(tf.to_float(t), tf.to_float(w), True, False, True, True, 'a'),"
        " tf.sparse_matmul(tf.to_float(w), tf.to_float(t))]"
    ),
    "svd": (
        "[sizes([tf.svd(t, True, True, 'a')[0]]), sizes(tf.svd(t)), tf.svd(t, compute_uv=False),"
        " [part.shape for part in tf.svd(t, True)]]"
    ),
    "tensordot": "[tf.tensordot(w, t, [[1], [0]], 'a'), tf.tensordot(t, t, 2), tf.tensordot(t, w, [0, 1])]",
    "trace": "tf.trace(tf.stack([m, w]), 'a')",
}
TABLES = [ClassCalls("tf", VALUES, CALLS)]
