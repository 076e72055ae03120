"""Use verifiers and data sets in other libraries' trainers and evaluations. There is one short file for each library.

| file | library | contents |
|---|---|---|
| `trl.py` | TRL 1.16 | reward functions, and an environment's problems with their reward function |
| `verl.py` | verl 0.9 | `compute_score` |
| `openrlhf.py` | OpenRLHF 0.11 | its remote reward, answered by `rlvr serve-verifier` |
| `inspect_ai.py` | Inspect | a scorer |
| `lm_eval.py` | lm-evaluation-harness 0.4 | a data set as a task |
| `skyrl.py` | SkyRL-gym 0.4 | an environment |
| `primeintellect.py` | verifiers 0.4 of Prime Intellect | a data set as a taskset that asks `rlvr serve-verifier` |

Each file imports its library only inside functions. No adapter turns the failure of a verifier into a score.
"""
