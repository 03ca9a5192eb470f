"""Script that starts the server in a process that may read the folder gpu/, but not list the folder around it.

Python finds a package by listing the folder around it, so `python -m` fails there.
"""

import importlib.util
import runpy
import sys
from pathlib import Path

_GPU = Path(__file__).parents[2]

if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("gpu", _GPU / "__init__.py", submodule_search_locations=[str(_GPU)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["gpu"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["gpu"])
    # As with `python -m`: the script's folder is no place for modules.
    del sys.path[0]
    runpy.run_module("gpu.process.programs.server", run_name="__main__", alter_sys=True)
