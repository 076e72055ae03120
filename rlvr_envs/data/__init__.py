"""Data sets of problems: what the adapters of published benchmarks share, and `text` for anything else.

A benchmark's `Source` (in its file in `rlvr_envs.tasks`) says what its rows are called and makes a problem of each. Rows come
from the folder `data_dir`, else from the folder that the environment variable `RLVR_DATA_DIR` names, else from the
hub through `datasets.load_dataset`. Local folders look like this:

```
<data folder>/gsm8k/train.jsonl        one JSON object on each line, in the columns of the hub's data set
<data folder>/gsm8k/test.parquet       or Parquet with the same columns
<data folder>/mbpp/test.jsonl          MBPP may have all its splits in one file
```
"""

from rlvr_envs.data import text
from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.local import DATA_DIR_VARIABLE
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source, clear_cache

__all__ = ["DATA_DIR_VARIABLE", "ProblemDataset", "Row", "Source", "clear_cache", "text"]
