"""Runs the console command `rlvr` for `python -m agents` and `torchrun -m agents`."""

from agents.commands.main import main

main()
