"""Ask TensorFlow 1.15 for what the programs of `tests/ops/string_programs.py` build and give.

Run with a Python that has it: `python tests/golden/make_string_program_goldens.py`. Writes
`tests/golden/strings/programs.json`.
"""

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import tensorflow.compat.v1 as tf

import string_programs

PATH = pathlib.Path(__file__).parent / "strings" / "programs.json"


def main():
    programs = {**string_programs.NAMED, **string_programs.VALUES}
    found = {name: string_programs.evaluate(tf, program) for name, program in programs.items()}
    for name in string_programs.VALUES:
        del found[name]["nodes"]
    mistakes = {
        name: string_programs.mistake(tf, program) for name, program in string_programs.MISTAKES.items()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items()]
    text = (
        '{"programs": {\n' + ",\n".join(lines) + '\n},\n"mistakes": ' + json.dumps(mistakes, indent=0) + "}\n"
    )
    PATH.write_text(text)


if __name__ == "__main__":
    main()
