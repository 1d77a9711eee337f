"""Operations on strings, which are byte strings in host memory: object arrays of `bytes`."""
