__distribution__ = "rlvr-envs"
