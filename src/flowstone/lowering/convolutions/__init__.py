"""Convolutions, normalisations and poolings by the kernels that suit their shapes."""
