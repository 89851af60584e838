#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts the step times of MLPerf's Llama 3.1 405B runs from one of them.

  tools/accuracy/mlperf_steps.py build/release/bin/weir

mlperf_steps.csv has the runs: medians and percentiles over the steps of all
runs of a system without the first five of each, from the logs in
mlcommons/training_results v5.0 and v5.1 (Apache-2.0), and layouts from the
names of their configurations (config_DGXH100_64x8x288xtp8pp8cp2.sh: 64 nodes
of 8 GPUs, 288 microbatches of one sequence, 8 chunks per rank, layers divided
with the embedding and the loss).

For each kind of GPU, fits three figures to the first system in the table:
a factor of the step time, and the probability and mean of an exponential delay
of a step, from its 95th and 99th percentile. The others are predicted.

The table is that of docs/stragglers.md, which a test compares with it.
"""
import csv
import json
import math
import os
import subprocess
import sys

FLAGS = """--model llama-3.1-405b --seq 8192 --mbs 1 --schedule interleaved-1f1b
--sequence-parallel --distributed-optimizer --runtime nemo --method fast
--account-for-embedding-in-pipeline-split
--account-for-loss-in-pipeline-split --format json""".split()


# GPUs of a node, and the name of one.
GPUS = {"dgx-h100": (8, "H100"), "gb200-nvl72": (64, "GB200")}


def name_of(row):
    """Returns "512 H100"; with the number format where it is not FP8."""
    gpus, name = GPUS[row["device"]]
    other = "" if row["precision"].startswith("fp8") else (
        ", " + row["precision"].upper())
    return f"{gpus * int(row['nodes']):,} {name}{other}"


def predicted_seconds(weir, row):
    flags = list(FLAGS)
    for flag, column in (("--cluster", "device"), ("--nodes", "nodes"),
                         ("--tp", "tp"), ("--pp", "pp"), ("--cp", "cp"),
                         ("--chunks", "chunks"), ("--gbs", "batch"),
                         ("--precision", "precision")):
        flags += [flag, row[column]]
    if row["nvlink_domain"] != "0":
        flags += ["--nvlink-domain", row["nvlink_domain"]]
    run = subprocess.run([weir, "simulate", *flags], capture_output=True,
                         text=True, check=False)
    # 1: the predicted peak of memory is above the GPU's.
    if run.returncode not in (0, 1):
        sys.exit(run.stderr)
    return json.loads(run.stdout)["result"]["batch_seconds"]


def fit(row, seconds):
    """Returns the factor, and probability and mean of delays in seconds."""
    median = float(row["median_seconds"])
    delay_95 = (float(row["p95_over_median"]) - 1) * median
    delay_99 = (float(row["p99_over_median"]) - 1) * median
    mean = (delay_99 - delay_95) / math.log(5)
    return median / seconds, 0.05 * math.exp(delay_95 / mean), mean


def percent(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.1f} %"


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} WEIR")
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "mlperf_steps.csv")
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    fits = {}
    print("| system | median, s | without fit | fitted | 95th / median, "
          "measured | predicted | 99th / median, measured | predicted |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        seconds = predicted_seconds(sys.argv[1], row)
        measured = float(row["median_seconds"])
        is_fit = row["device"] not in fits
        if is_fit:
            fits[row["device"]] = fit(row, seconds)
            factor, probability, mean = fits[row["device"]]
            print(f"{row['device']}: factor {factor:.3f}, --jitter step=delay:"
                  f"{probability:.3g}:{mean:.3g}", file=sys.stderr)
        factor, probability, mean = fits[row["device"]]
        median = factor * seconds
        cells = [name_of(row) + (" (fitted)" if is_fit else ""),
                 f"{measured:g}", percent(seconds, measured),
                 percent(median, measured)]
        for level, column in ((0.05, "p95_over_median"),
                              (0.01, "p99_over_median")):
            delay = max(mean * math.log(probability / level), 0)
            cells += [f"{float(row[column]):.3f}", f"{1 + delay / median:.3f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
