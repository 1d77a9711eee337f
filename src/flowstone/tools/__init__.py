"""The command `flowstone`: one file for each subcommand, listed in `command_line`."""
