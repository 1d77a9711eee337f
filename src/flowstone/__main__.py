"""`python -m flowstone` is the command `flowstone` (flowstone.tools.command_line)."""

from flowstone.tools.command_line import main

if __name__ == "__main__":
    main()
