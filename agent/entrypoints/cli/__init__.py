"""The command line: commands, their sources of input and their output."""
