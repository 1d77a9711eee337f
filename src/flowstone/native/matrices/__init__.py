"""Linear algebra: small matrices, systems of few diagonals, many matrices by LAPACK, sparse products."""
