# SPDX-License-Identifier: Apache-2.0
"""Measures fast estimates: how many per second, and what Python adds to C++.

The scenarios have 8 ranks and 32 microbatches, and all differ. The C++ part is
measured inside the extension module in the same run: resolving the scenario and
estimating it. The rest, the conversions between Python and C++, is Python's. All
times are CPU times of the thread.
"""

import argparse
import dataclasses
import json
import time

import weir
from weir import _core


def scenarios(number):
    """Returns scenarios that differ in tensor parallelism, schedule and costs."""
    base = weir.Scenario.load("llama-3-70b-64-h100", gbs=64).resolved()
    found = []
    for i in range(number):
        schedule = ("1f1b", "zb-h1")[i % 2]
        communication = dataclasses.replace(
            base.communication, bucket_bytes=25e6 + 1e4 * i)
        found.append(
            dataclasses.replace(base, schedule=schedule, communication=communication))
    return found


def measure(number, repetitions):
    """Returns the values of the fastest repetition."""
    work = scenarios(number)
    weir.estimates(work[:2])
    best = None
    for _ in range(repetitions):
        inside = _core.estimate_seconds()
        begin = time.thread_time()
        for scenario in work:
            weir.estimate(scenario)
        total = time.thread_time() - begin
        inside = _core.estimate_seconds() - inside
        values = {
            "estimates_per_second": number / total,
            "cpp_microseconds": inside / number * 1e6,
            "python_microseconds": (total - inside) / number * 1e6,
            "python_over_cpp": total / inside,
        }
        if best is None or values["python_microseconds"] < best["python_microseconds"]:
            best = values
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.number, options.repetitions), indent=2))
