"""Signals: Fourier and cosine transforms, windows, frames."""
