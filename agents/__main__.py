"""`python -m agents`, and so `torchrun -m agents`: the console command `rlvr`."""

from rlvr_envs.console import main

main()
