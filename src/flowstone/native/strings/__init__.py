"""Kernels of strings: CPython's objects of bytes read and made where they are."""
