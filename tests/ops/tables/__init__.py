"""The op table: one file of cases for each family of ops. `op_cases` says what a case is."""
