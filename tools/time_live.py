#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times estimates of "weir live" on 64 ranks: milliseconds from request to
answer, and CPU milliseconds of all its processes.

  tools/time_live.py build/release/bin/weir [--requests 10]

Every request has another number of microbatches, from 186 to 249, and another
bandwidth.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import time
import urllib.request

GIVEN = ["--pp", "64", "--microbatches", "256", "--schedule", "1f1b", "--costs"]
FUSED = GIVEN + ["f=1,b=2,c=0.1"]
SPLIT = GIVEN + ["f=1,i=1,w=1,c=0.1"]
MODEL = ["--model", "qwen3-32b", "--cluster", "dgx-h100", "--nodes", "8",
         "--pp", "64", "--gbs", "256", "--mbs", "1", "--seq", "4096",
         "--schedule", "1f1b"]
# Schedules and their chunks per rank.
SCHEDULES = [("1f1b", 1), ("gpipe", 1), ("zb-h1", 1), ("zb-v", 2),
             ("pipedream-2bw", 1), ("pipedream", 1), ("pipemare", 1),
             ("spectrain", 1), ("xpipe", 1), ("timeprest", 1)]
# Not shortened: inference, and a search for an order in every estimate.
WHOLE = [("edgepipe", 1), ("optpipe", 1)]
RUNS = [(name, chunks, SPLIT if name.startswith(("zb", "opt")) else FUSED)
        for name, chunks in SCHEDULES + WHOLE]
# The model has one layer per rank, which has no second chunk.
RUNS += [(name, chunks, MODEL) for name, chunks in SCHEDULES if chunks == 1]


def cpu_seconds(process):
    """Returns the CPU time of a process and of its children so far."""
    children = subprocess.run(["pgrep", "-P", str(process.pid)], text=True,
                              capture_output=True, check=False).stdout.split()
    ticks = 0
    for pid in [str(process.pid), *children]:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def start(weir, arguments):
    """Returns a running "weir live", its address and its token."""
    process = subprocess.Popen([weir, "live", *arguments], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in process.stdout:
        match = re.search(r"(http://127\.0\.0\.1:\d+)\S*token=([0-9a-f]+)", line)
        if match:
            return process, match.group(1), match.group(2)
    raise SystemExit(f"weir live {' '.join(arguments)} ended without an address")


def measure(weir, run, num_requests):
    """Returns the seconds of every request, and the mean CPU seconds."""
    schedule, chunks, arguments = run
    process, address, token = start(weir, arguments)
    seconds = []
    try:
        for i in range(num_requests + 1):
            settings = {"pipeline": 64, "microbatches": 256 - 7 * (i % 11),
                        "chunks": chunks, "schedule": schedule,
                        "bandwidth": 1 + 0.1 * i, "memory_limit_bytes": 0,
                        "slowest_gpu": 1}
            request = urllib.request.Request(
                address + "/estimate", json.dumps(settings).encode(),
                {"X-Weir-Token": token, "Content-Type": "application/json",
                 "Origin": address})
            before = time.monotonic()
            with urllib.request.urlopen(request) as answer:
                answer.read()
            if i > 0:
                seconds.append(time.monotonic() - before)
            else:  # the first request starts processes
                first_cpu = cpu_seconds(process)
        return seconds, (cpu_seconds(process) - first_cpu) / num_requests
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("weir", help="the program")
    parser.add_argument("--requests", type=int, default=10)
    flags = parser.parse_args()
    print("schedule        costs   mean ms  most ms  CPU ms")
    for run in RUNS:
        seconds, cpu = measure(flags.weir, run, flags.requests)
        costs = "model" if run[2] is MODEL else "given"
        print(f"{run[0]:14}  {costs}  {1e3 * statistics.mean(seconds):8.0f}"
              f"  {1e3 * max(seconds):7.0f}  {1e3 * cpu:6.0f}")


if __name__ == "__main__":
    main()
