# SPDX-License-Identifier: Apache-2.0
"""Times a sweep of 1,000 points from Python and on the command line.

sweep.py PROGRAM [REPETITIONS], where PROGRAM is the path of weir. All times are seconds of a
wall clock; the two alternate.
"""

import json
import subprocess
import sys
import tempfile
import time

import weir

SCENARIO = "llama-3-70b-64-h100"
GRID = {"gbs": "16..1000+4", "schedule": ["1f1b", "zb-h1", "gpipe", "interleaved-1f1b:v=2"]}
NUM_POINTS = 4 * len(range(16, 1001, 4))


def from_python():
    """Runs the sweep and collects it."""
    begin = time.perf_counter()
    points = weir.sweep(SCENARIO, GRID, method="fast")
    assert len(points) == NUM_POINTS
    return time.perf_counter() - begin


def from_command_line(program):
    """Does the same."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        grid = "gbs=16..1000+4,schedule=" + ",".join(GRID["schedule"])
        subprocess.run(
            [program, "sweep", "--scenario", SCENARIO, "--grid", grid, "--method", "fast",
             "--out", folder + "/sweep", "--quiet"], check=False, stdout=subprocess.PIPE)
        out = subprocess.run([program, "collect", folder + "/sweep", "--format", "json"],
                             check=True, stdout=subprocess.PIPE).stdout
        assert len(json.loads(out)["result"]["points"]) == NUM_POINTS
    return time.perf_counter() - begin


if __name__ == "__main__":
    times = [(from_python(), from_command_line(sys.argv[1])) for _ in range(int((sys.argv + ["3"])[2]))]
    python, program = (min(column) for column in zip(*times))
    print(f"{NUM_POINTS} points: Python {python:.2f} s, command line {program:.2f} s, "
          f"ratio {python / program:.2f}")
