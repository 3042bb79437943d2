"""The command line: one module per command, each a client of a running hub unless it says otherwise."""
