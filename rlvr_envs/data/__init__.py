"""Data sets of problems: code that the published benchmarks share, and `text` for any other data set.

A benchmark's `Source`, made from a table row in `rlvr_envs.tasks`, names the splits and turns each row of data into a problem.
Rows come from the folder `data_dir`, or else from the folder in the environment variable `RLVR_DATA_DIR`, or else from the hub
through `datasets.load_dataset`. Local folders look like this:

```
<data folder>/gsm8k/train.jsonl        one JSON object on each line, in the columns of the hub's data set
<data folder>/gsm8k/test.parquet       or Parquet with the same columns
<data folder>/mbpp/test.jsonl          MBPP may have all its splits in one file
```
"""

from rlvr_envs.data import text
from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.local import DATA_DIR_VARIABLE, read_rows
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source, clear_cache

__all__ = ["DATA_DIR_VARIABLE", "ProblemDataset", "Row", "Source", "clear_cache", "read_rows", "text"]
