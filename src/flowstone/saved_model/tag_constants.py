"""Tags by which the graphs of a SavedModel are chosen."""

from __future__ import annotations

GPU = "gpu"
SERVING = "serve"
TPU = "tpu"
TRAINING = "train"
