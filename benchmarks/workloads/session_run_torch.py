"""An addition from and to a Python number in torch: eager or, with VARIANT=compile, compiled."""

import os

import shapes  # noqa: F401 - makes `measuring` importable
import torch

from measuring import median_of_many, report


def add(x):
    return x + 1.0


if os.environ["VARIANT"] == "compile":
    add = torch.compile(add)

with torch.inference_mode():
    report("add", median_of_many(lambda: add(torch.tensor(2.0)).item()) * 1e6, "us")
