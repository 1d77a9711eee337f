"""Calls of the functions of `tf.linalg`, `tf.spectral`, `tf.bitwise` and `tf.sets`."""

from class_calls import ClassCalls

BITS = """
x = tf.constant([5, 12, -7])
y = tf.constant([3, 10, 6])
"""
BITWISE = {
    "bitwise_and": "tf.bitwise.bitwise_and(x, y, 'a')",
    "bitwise_or": "tf.bitwise.bitwise_or(x, y, 'a')",
    "bitwise_xor": "tf.bitwise.bitwise_xor(x, y, 'a')",
    "invert": "[tf.bitwise.invert(x, 'a'), tf.bitwise.invert(tf.cast(y, tf.uint16))]",
    "left_shift": "tf.bitwise.left_shift(x, [3, 1, 2], 'a')",
    "right_shift": "tf.bitwise.right_shift(x, [1, 2, 1], 'a')",
}
MATRICES = """
m = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], tf.float64)
w = tf.constant([[2.0, 1.0, 3.0], [7.0, 4.0, -1.0], [5.0, 6.0, 3.0]], tf.float64)
tall = tf.reshape(tf.cos(tf.range(12.0) ** 1.5), [4, 3])
right = tf.constant([[1.0, 0.5], [-2.0, 3.0], [4.0, 1.0]], tf.float64)
z = tf.constant([[1 + 2j, 3 - 1j, 0.5], [0.5j, 2.0, 1 - 1j]], tf.complex64)
def sizes(parts):
    return [tf.abs(part) for part in parts]
"""
LINALG = {
    "adjoint": "tf.linalg.adjoint(z, 'a')",
    "band_part": "[tf.linalg.band_part(w, 1, 0, 'a'), tf.linalg.band_part(w, -1, 1)]",
    "cholesky": "tf.linalg.cholesky(m, 'a')",
    "cholesky_solve": "tf.linalg.cholesky_solve(tf.linalg.cholesky(m), right, 'a')",
    "det": "tf.linalg.det(tf.stack([m, w]), 'a')",
    "diag": "tf.linalg.diag(right, 'a')",
    "diag_part": "tf.linalg.diag_part(right, 'a')",
    "eigh": "[sizes(tf.linalg.eigh(m, 'a'))]",
    "eigvalsh": "tf.linalg.eigvalsh(m, 'a')",
    "einsum": "[tf.linalg.einsum('ij,jk->ki', w, right), tf.linalg.einsum('ij->', right)]",
    "eye": "[tf.linalg.eye(2, 3, [2], tf.int32, 'a'), tf.linalg.eye(2)]",
    "inv": "[tf.linalg.inv(w, True, 'a'), tf.linalg.inv(w)]",
    "logdet": "tf.linalg.logdet(m, 'a')",
    "lstsq": "[tf.linalg.lstsq(right, w, 0.5, True, 'a'), tf.linalg.lstsq(right, w, fast=False)]",
    "norm": (
        "[tf.linalg.norm(w, 1, 1, name='a'), tf.linalg.norm(w), tf.linalg.norm(w, np.inf, keep_dims=True),"
        " tf.linalg.norm(right, 'fro', [0, 1]), tf.linalg.norm(right, axis=0)]"
    ),
    "qr": "[sizes(tf.linalg.qr(right, True, 'a')[1:]), sizes(tf.linalg.qr(tall))]",
    "set_diag": "tf.linalg.set_diag(right, tf.constant([8.0, 9.0], tf.float64), 'a')",
    "slogdet": "list(tf.linalg.slogdet(tf.stack([m, w]), 'a'))",
    "solve": "[tf.linalg.solve(w, right, True, 'a'), tf.linalg.solve(w, right)]",
    "svd": "[sizes(tf.linalg.svd(tall, False, name='a')), tf.linalg.svd(right, True, False)]",
    "tensordot": "[tf.linalg.tensordot(w, right, [[1], [0]], 'a'), tf.linalg.tensordot(w, w, 2)]",
    "trace": "tf.linalg.trace(tf.stack([m, w]), 'a')",
    "transpose": "[tf.linalg.transpose(z, 'a', True), tf.linalg.transpose(z)]",
    "triangular_solve": (
        "[tf.linalg.triangular_solve(w, right, False, True, name='a'), tf.linalg.triangular_solve(w, right)]"
    ),
}
SIGNALS = """
x = tf.reshape(tf.cos(tf.range(48.0)), [2, 3, 8])
z = tf.complex(tf.cos(tf.range(30.0)), tf.sin(tf.range(30.0)))
z = tf.reshape(z, [2, 3, 5])
"""
SPECTRAL = {
    "dct": "[tf.spectral.dct(x, 2, None, -1, 'ortho', 'a'), tf.spectral.dct(x[0])]",
    **{name: f"tf.spectral.{name}(z, 'a')" for name in ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d")},
    "irfft": "[tf.spectral.irfft(z, [7], 'a'), tf.spectral.irfft(z[0])]",
    "irfft2d": "tf.spectral.irfft2d(z, [2, 7], 'a')",
    "irfft3d": "tf.spectral.irfft3d(z, [2, 2, 7], 'a')",
    "rfft": "[tf.spectral.rfft(x, [6], 'a'), tf.spectral.rfft(x[0])]",
    "rfft2d": "tf.spectral.rfft2d(x, [2, 6], 'a')",
    "rfft3d": "tf.spectral.rfft3d(x, [2, 2, 6], 'a')",
}
ROWS = """
x = tf.constant([[1, 2, 4], [3, 5, 9]], tf.int64)
y = tf.constant([[2, 1, 7], [8, 3, 6]], tf.int64)
sparse = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 3, 5], tf.int64), [2, 2])
def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]
"""
SETS = {
    "set_difference": (
        "[parts(tf.sets.set_difference(x, y, False, True)), parts(tf.sets.set_difference(x, sparse)),"
        " parts(tf.sets.set_difference(sparse, sparse))]"
    ),
    "set_intersection": (
        "[parts(tf.sets.set_intersection(x, y, False)), parts(tf.sets.set_intersection(sparse, sparse))]"
    ),
    "set_size": "tf.sets.set_size(sparse, False)",
    "set_union": "[parts(tf.sets.set_union(x, y, False)), parts(tf.sets.set_union(x, sparse))]",
}
TABLES = [
    ClassCalls("tf.bitwise", BITS, BITWISE),
    ClassCalls("tf.linalg", MATRICES, LINALG),
    ClassCalls("tf.sets", ROWS, SETS),
    ClassCalls("tf.spectral", SIGNALS, SPECTRAL),
]
