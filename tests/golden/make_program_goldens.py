"""Ask TensorFlow 1.15 for what the programs of `tests/compat/programs` print.

Run with a Python that has it: `python tests/golden/make_program_goldens.py [PROGRAM …]`. Writes
`tests/golden/programs/*.txt`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "compat" / "programs"


def printed(program):
    """What the program prints, run in an empty folder."""
    environment = dict(
        os.environ,
        CUDA_VISIBLE_DEVICES="",
        TF_CPP_MIN_LOG_LEVEL="2",
        OMP_NUM_THREADS="1",
        PYTHONWARNINGS="ignore",
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(program)]
        text = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, text=True
        ).stdout
    return text.replace("Parsing Inputs...\n", "")  # the profiler's own


def main():
    names = sys.argv[1:] or sorted(path.stem for path in PROGRAMS.glob("*.py"))
    for name in names:
        (HERE / "programs" / f"{name}.txt").write_text(printed(PROGRAMS / f"{name}.py"))


if __name__ == "__main__":
    main()
