"""Options of the command lines of TensorFlow's tools that argparse does not have."""

from __future__ import annotations

import argparse

__all__ = ["add_truth"]


def add_truth(parser: argparse.ArgumentParser, name: str, default: bool, text: str | None = None) -> None:
    """An option that is true as `--name` and `--name=true`, and false with any other word."""
    parser.add_argument(f"--{name}", nargs="?", const=True, type=_truth, default=default, help=text)


def _truth(word: str) -> bool:
    return word.lower() == "true"
