"""The command `flowstone`: one file a subcommand, gathered by `command_line`."""
