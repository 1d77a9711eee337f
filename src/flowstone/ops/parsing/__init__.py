"""Text and messages as tensors: Examples, JSON, CSV, raw bytes, serialised tensors."""
