"""Flags of a program's command line, and the frame of a program."""

from __future__ import annotations

import enum

import pytest

import flowstone.app
from flowstone import flags


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
        (["--steps=-1"], flags.ValidationError),
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
    assert not values.is_parsed() and values.steps == 4 and values.is_parsed()
    values.steps = 5
    assert values.steps == 5
    values.unparse_flags()
    assert values.steps == 4
    with pytest.raises(AttributeError):
        _ = values.missing
    with pytest.raises(AttributeError):
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
    with pytest.raises(flags.ValidationError, match="must have a value"):
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
