"""The commands of `rlvr`, one file each. They import torch only when they run."""
