"""`python -m agents`, and so `torchrun -m agents`: the console command `rlvr`."""

from agents.commands.main import main

main()
