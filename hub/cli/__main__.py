"""`python -m hub.cli`: the command `aboyeur`."""

from hub.cli.main import main

main()
