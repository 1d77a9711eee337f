"""Programs as values: their text, what reads a value, and where statements are put."""

from __future__ import annotations

import torch

from flowstone.native.programs.programs import Builder, Loop, Statement
from small_programs import counted, made

X = torch.zeros(3, 2)


def power(builder: Builder, x: int) -> list[int]:
    def body(counter: int, y: int) -> list[int]:
        turned = builder.add(
            "Copy", [x], ("float32", (2, 3)), at=x, sizes=(2, 3), from_strides=(1, 2), to_strides=(3, 1),
            from_place=0, to_place=0,
        )  # fmt: skip
        return [builder.view(builder.add("Mul", [y, turned], ("float32", (2, 3))), (3, 2))]

    return counted(builder, 4, [x], body)


TEXT = """\
%0 = input float32[3,2]
%1 = constant 0 : int32[]
%2 = constant 1 : int32[]
%3 = constant 4 : int32[]
%7 = Copy(%0) from_place=0 from_strides=(1, 2) sizes=(2, 3) to_place=0 to_strides=(3, 1) : float32[2,3]
loop %4 = (%1, %10), %5 = (%0, %9)
    %6 = Less(%4, %3) : bool[]
    while %6
    %8 = Mul(%5, %7) : float32[2,3]
    %10 = Add(%4, %2) : int32[]
return %5"""


def test_text() -> None:
    assert str(made([X], power)) == TEXT
    assert repr(made([X], power)) == "Copy+Less+Mul+Add"


def test_equal_programs_are_equal() -> None:
    assert made([X], power) == made([X], power)
    assert hash(made([X], power)) == hash(made([X], power))
    assert made([X], power) != made([X.double()], power)


def test_what_is_made_outside_of_a_loop_is_put_there() -> None:
    program = made([X], power)
    kinds = [type(each) for each in program.body]
    assert kinds == [Statement, Loop]
    assert program.has_loops


def test_reads() -> None:
    program = made([X], power)
    reads = program.reads()
    assert reads[0] == 2  # by the copy, and by the loop
    assert reads[8] == 1  # through the view that the loop hands on
    assert reads[9] == 0  # which has no memory of its own


def test_guards() -> None:
    def write(builder: Builder, x: int) -> list[int]:
        zero = builder.constant("float32", (), [0.0])
        first = builder.add("Greater", [x, zero], ("bool", ()))
        result = builder.value("float32", ())
        builder.add("Set", [x], None, ((((first), True),),), into=result)
        builder.add("Set", [zero], None, ((((first), False),),), into=result)
        return [result]

    assert [line for line in str(made([torch.zeros(())], write)).splitlines() if "Set" in line] == [
        "%3 = Set(%0) : float32[] if %2",
        "%3 = Set(%1) : float32[] if not %2",
    ]
