# SPDX-License-Identifier: Apache-2.0
"""Runs one command of weir in a process of its own: PARENT MODULE ARGUMENT...

Started without site packages, so that a command starts quickly; therefore it
loads the extension module by its path.
"""

import importlib.machinery
import importlib.util
import os
import sys
import traceback
from typing import Any


def _load(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader("_core", path)
    spec = importlib.util.spec_from_file_location("_core", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _run() -> int:
    try:
        return int(_load(sys.argv[2]).worker_main(sys.argv[3:], int(sys.argv[1])))
    except Exception:
        # Avoids Python's exit code 1, which means a negative result.
        traceback.print_exc()
        return 70


if __name__ == "__main__":
    code = _run()
    # Skips the shutdown of the interpreter, which takes some milliseconds.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
