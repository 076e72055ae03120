"""The commands of `rlvr`, each in its own file. They import torch only when they run."""
