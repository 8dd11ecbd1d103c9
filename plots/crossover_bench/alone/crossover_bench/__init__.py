# SPDX-License-Identifier: Apache-2.0
"""The package itself, by a folder that holds nothing else: other interpreters, such as PyTorch's,
get that folder as PYTHONPATH, and so none of what is installed beside the package."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2]
_SPEC = spec_from_file_location(
    __name__, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
)
assert _SPEC is not None and _SPEC.loader is not None
sys.modules[__name__] = module_from_spec(_SPEC)
_SPEC.loader.exec_module(sys.modules[__name__])
