"""Linear algebra: products of matrices and tensors, diagonals."""
