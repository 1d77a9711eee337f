"""An addition from and to a Python number in eager torch."""

import shapes  # noqa: F401 - makes `measuring` importable
import torch

from measuring import median_of_many, report

with torch.inference_mode():
    report("add", median_of_many(lambda: (torch.tensor(2.0) + 1.0).item()) * 1e6, "us")
