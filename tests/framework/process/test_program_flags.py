"""Flags of a program's command line, and the frame of a program."""

from __future__ import annotations

import enum

import pytest

import flowstone.app
import forked
from flowstone import flags
from flowstone.framework.process.program_flags import FLAGS, ProgramFlags


@pytest.fixture
def values() -> flags.FlagValues:
    values = flags.FlagValues()
    flags.DEFINE_string("name", "x", "a name", flag_values=values, short_name="n")
    flags.DEFINE_integer("steps", 10, "how many", flag_values=values, lower_bound=0)
    flags.DEFINE_float("rate", 0.5, "how fast", flag_values=values)
    flags.DEFINE_boolean("verbose", False, "say more", flag_values=values)
    flags.DEFINE_enum("mode", "train", ["train", "test"], "what to do", flag_values=values)
    flags.DEFINE_list("layers", ["1"], "sizes", flag_values=values)
    flags.DEFINE_multi_integer("seed", [1], "seeds", flag_values=values)
    return values


def test_defaults_and_types(values: flags.FlagValues) -> None:
    values.mark_as_parsed()
    assert (values.name, values.steps, values.rate, values.verbose) == ("x", 10, 0.5, False)
    assert values.layers == ["1"] and values["steps"].help == "how many" and "steps" in values


def test_forms_of_the_command_line(values: flags.FlagValues) -> None:
    words = "p --name=y -steps 3 --rate 2 --verbose a --layers=4,5 --seed 7 --seed=8 --mode test -- --steps 9"
    assert values(words.split()) == ["p", "a", "--steps", "9"]
    assert (values.name, values.steps, values.rate, values.verbose) == ("y", 3, 2.0, True)
    assert (values.layers, values.seed, values.mode) == (["4", "5"], [7, 8], "test")
    values(["p", "--noverbose", "-n", "z"])
    assert (values.verbose, values.name) == (False, "z")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--steps=many"], flags.IllegalFlagValueError),
        (["--steps=-1"], flags.IllegalFlagValueError),
        (["--mode=sleep"], flags.IllegalFlagValueError),
        (["--verbose=perhaps"], flags.IllegalFlagValueError),
        (["--unknown"], flags.UnrecognizedFlagError),
        (["--name"], flags.Error),
    ],
)
def test_what_is_refused(values: flags.FlagValues, words: list[str], error: type) -> None:
    with pytest.raises(error):
        values(["p", *words])


def test_unknown_flags_may_stay_arguments(values: flags.FlagValues) -> None:
    assert values(["p", "--unknown", "--steps=1"], known_only=True) == ["p", "--unknown"]


def test_the_command_line_is_read_lazily(values: flags.FlagValues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["p", "--steps=4", "--pytest-flag"])
    with pytest.raises(flags.UnparsedFlagAccessError):
        _ = values.steps
    values = ProgramFlags(values)
    assert not values.is_parsed() and values.steps == 4 and values.is_parsed()
    values.steps = 5
    assert values.steps == 5
    values.unparse_flags()
    assert values.steps == 4
    with pytest.raises(AttributeError):
        _ = values.missing
    with pytest.raises(flags.UnrecognizedFlagError):
        values.missing = 1


def test_definitions_must_agree(values: flags.FlagValues) -> None:
    flags.DEFINE_integer("steps", 10, "how many", flag_values=values)
    with pytest.raises(flags.DuplicateFlagError):
        flags.DEFINE_integer("steps", 11, "how many", flag_values=values)
    with pytest.raises(flags.IllegalFlagValueError):
        flags.DEFINE_integer("half", 0.5, "no integer", flag_values=values)


def test_names_of_tensorflow_1_4(values: flags.FlagValues) -> None:
    flags.DEFINE_string(flag_name="old", default_value="v", docstring="as 1.4 names them", flag_values=values)
    values.mark_as_parsed()
    assert values.old == "v" and values["old"].help == "as 1.4 names them"


def test_validators(values: flags.FlagValues) -> None:
    flags.DEFINE_string("path", None, "where", flag_values=values)
    flags.mark_flag_as_required("path", values)
    with pytest.raises(flags.IllegalFlagValueError, match="must have a value"):
        values(["p"])
    assert values(["p", "--path=here"]) == ["p"] and values.path == "here"


def test_enum_classes_and_aliases(values: flags.FlagValues) -> None:
    Color = enum.Enum("Color", "RED BLUE")
    flags.DEFINE_enum_class("color", Color.RED, Color, "which", flag_values=values)
    flags.DEFINE_alias("colour", "color", flag_values=values)
    values(["p", "--colour=BLUE"])
    assert values.color is Color.BLUE and values.colour is Color.BLUE


def test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def main(argv: list[str]) -> int:
        seen.append(argv)
        return 3

    with pytest.raises(SystemExit) as ended:
        flowstone.app.run(main, ["p", "a", "--no_such_flag"])
    assert ended.value.code == 3 and seen == [["p", "a", "--no_such_flag"]]


def test_flags_are_those_of_absl() -> None:
    from absl import flags as absl_flags

    absl_flags.DEFINE_integer("flag_of_absl", 3, "defined by absl")
    flags.DEFINE_string("flag_of_ours", "x", "defined here")
    try:
        FLAGS(["p", "--flag_of_absl=4", "--flag_of_ours=y"])
        assert (FLAGS.flag_of_absl, absl_flags.FLAGS.flag_of_ours) == (4, "y")
        assert FLAGS["flag_of_ours"].value == "y" and "flag_of_absl" in FLAGS
        assert absl_flags.FLAGS.find_module_defining_flag("flag_of_ours") == __name__
    finally:
        del FLAGS.flag_of_absl, FLAGS.flag_of_ours
    assert "flag_of_ours" not in absl_flags.FLAGS


def test_flags_of_absl_give_way() -> None:
    values = flags.FlagValues()
    definition = absl_definition(values)
    assert values.find_module_defining_flag(definition) == "absl.logging"
    flags.DEFINE_string(definition, "mine", "a program's own", flag_values=values)
    values(["p"])
    assert values[definition].value == "mine"
    with pytest.raises(flags.DuplicateFlagError):
        flags.DEFINE_string(definition, "other", "again", flag_values=values)


def absl_definition(values: flags.FlagValues) -> str:
    """The name of a flag that absl's logging is said to define."""
    flags.DEFINE_integer("verbosity", 0, "how much", flag_values=values)
    values.register_flag_by_module("absl.logging", values["verbosity"])
    own = values.flags_by_module_dict()[__name__]
    own.clear()
    return "verbosity"


def test_how_programs_before_1_5_read_flags(
    values: flags.FlagValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["p", "--steps=4", "rest"])
    old = ProgramFlags(values)
    assert old._parse_flags() == ["rest"]
    assert getattr(old, "__flags")["steps"] == 4
    old.steps = 6
    assert (values.steps, sorted(old)[:2], len(old) > 5) == (6, ["layers", "mode"], True)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [(["--help"], 1, "how many"), (["--steps=x"], 1, ""), (["--steps=2", "--other"], 3, "steps 2")],
)
def test_the_end_of_a_program(words: list[str], status: int, text: str) -> None:
    program = (
        "import flowstone as tf\n"
        "tf.app.flags.DEFINE_integer('steps', 1, 'how many')\n"
        "def main(argv):\n"
        "    print('steps', tf.app.flags.FLAGS.steps)\n"
        "    return 3\n"
        "tf.app.run()\n"
    )
    result = forked.run(words, code=program)
    assert result.returncode == status
    assert text in result.stdout
    assert ("FATAL Flags parsing error" in result.stderr) == (words == ["--steps=x"])
