"""Sphinx configuration; `make docs` builds with it. Nothing is fetched, neither by the build nor by a reader's browser."""

import sys
from pathlib import Path

import verifiers

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "rlvr-envs"
author = copyright = "the rlvr-envs authors"
version = release = verifiers.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "references",
    "docstrings",
    "mathml",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_ext", "_build"]
nitpicky = True

html_theme = "furo"
html_title = "rlvr-envs"
html_copy_source = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks hold their outputs: `make course` runs them

# A single backtick in a docstring is code, and a link where what it names is documented.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# Types whose documentation is elsewhere.
nitpick_ignore_regex = [
    (r"py:.*", r"(torch|numpy|jaxtyping|gymnasium)\..*"),
    (r"py:.*", r"(collections\.abc|contextlib|fractions|os|pathlib|re|threading)\..*"),  # Python's own
    (r"py:class", r"Tensor|Float|Bool|Int|NDArray|np\.\w+"),  # in shapes: Float[Tensor, "b t"]
    (r"py:exc", r"ResetNeeded|ProgramEndedError"),  # of gymnasium.error and of the sandbox
    (
        r"py:class",
        r"Baseline|Credit|Form|MeanOver|Pairing|Rewards|Scale|Selection",
    ),  # of a Literal, named without their module
    (r"py:class", r"Value|P"),  # type variables
    (r"py:class", r"(\w+\.)?Annotated|FINITE|min|max|WORDS|<.*>"),  # bounds of settings, such as <at least 1>
    # Imported for type checkers alone, so also without their module.
    (r"py:class", r"Sharding|ShardedModule|Ranks|CarriedGroup|Loss|PreferenceLoss|VectorEnv|Callback"),
    (r"py:class", r"\w+(\.\w+)*\[.*|Literal\['.*"),  # Sphinx cuts Mapping[str, int] and Literal['a', 'b'] at the comma
]
