# SPDX-License-Identifier: Apache-2.0
"""`python -m weir ARGUMENT...` is `weir ARGUMENT...`."""

import sys

from weir import _core


def main() -> int:
    """Runs the command line."""
    if "--slurm" in sys.argv[1:]:
        print(
            "error: command line: --slurm is given to python -m weir, expected the "
            "program weir, which jobs can start",
            file=sys.stderr,
        )
        return 2
    return _core.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
