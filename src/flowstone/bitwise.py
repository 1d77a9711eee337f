"""`flowstone.bitwise`: operations on the bits of integers."""

from flowstone.ops.numbers.bitwise import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)
