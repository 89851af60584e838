# SPDX-License-Identifier: Apache-2.0
"""Measures fast estimates: how many per second, and what Python adds to C++.

The scenarios have 8 pipeline ranks and 32 microbatches, and all differ. The C++ part is
measured inside the extension module in the same run: resolving the scenario and
estimating it. The rest, the conversions between Python and C++, is Python's. All
times are CPU times of the thread. `weir.estimates` converts a list before it
estimates; `weir.estimate`, called for each, converts when the caches have other data.
"""

import argparse
import dataclasses
import json
import time

import weir
from weir import _core


def given_costs(number):
    """Returns pipelines with given costs that differ in costs and schedule."""
    return [
        weir.Scenario(
            costs=weir.GivenCosts(
                stages=[weir.GivenCostsStage(
                    forward_seconds=1 + i / number, backward_seconds=2)]),
            parallelism=weir.Parallelism(pipeline=8), num_microbatches=32,
            schedule=("1f1b", "gpipe")[i % 2])
        for i in range(number)]


def models(number):
    """Returns Llama 3 70B on 64 GPUs, with different buckets and schedules."""
    base = weir.Scenario.load("llama-3-70b-64-h100", gbs=64).resolved()
    return [
        dataclasses.replace(
            base, schedule=("1f1b", "zb-h1")[i % 2],
            communication=dataclasses.replace(
                base.communication, bucket_bytes=25e6 + 1e4 * i))
        for i in range(number)]


def one_by_one(work):
    for scenario in work:
        weir.estimate(scenario)


def measure(work, repetitions, estimate=one_by_one):
    """Returns the values of the fastest repetition."""
    number = len(work)
    weir.estimates(work[:2])
    best = None
    for _ in range(repetitions):
        inside = _core.estimate_seconds()
        begin = time.thread_time()
        estimate(work)
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
    for make in (given_costs, models):
        work = make(options.number)
        for estimate in (one_by_one, weir.estimates):
            values = measure(work, options.repetitions, estimate)
            print(make.__name__, estimate.__name__, json.dumps(values, indent=2))
