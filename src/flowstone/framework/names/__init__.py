"""How public names are found: late imports, modules without files, older orders, names that are refused."""
