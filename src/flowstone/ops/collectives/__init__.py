"""Operations by which nodes on several devices exchange values: reductions, gathers, broadcasts."""
