"""Does a proof written in Coq prove the goal?"""
