#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the commands for real runs: CPU seconds, and the most memory (at least
that of this script before it starts the command).

  tools/time_real_runs.py build/release/bin/weir [--megabytes 1000]

Makes a trace of this size (Chrome JSON whose ranges name passes, among kernels,
as PyTorch's profiler writes them) and a profile of passes at 16 clocks in a
temporary folder.
"""
import argparse
import os
import subprocess
import sys
import tempfile

PASSES = 512  # of a step, half of them forwards


def write_trace(path, megabytes):
    """Writes steps of forwards and backwards with kernels between them."""
    step = []
    for i in range(PASSES):
        name = f"PP:0{'F' if i < PASSES // 2 else 'B'}{i % (PASSES // 2)}"
        start = 1000 * i
        step.append((name, "gpu_user_annotation", start, 900))
        step += [("void cutlass::Kernel<cutlass_80_tensorop_bf16>", "kernel",
                  start + 10 * k, 9) for k in range(90)]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents": [\n')
        written, number = 0, 0
        while written < megabytes * 1_000_000:
            text = "".join(
                f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 0, '
                f'"tid": 7, "ts": {number * 1000 * PASSES + start}, '
                f'"dur": {duration}, "args": {{"device": 0, "stream": 7, '
                f'"correlation": {start}, "grid": [128, 1, 1]}}}},\n'
                for name, cat, start, duration in step)
            file.write(text)
            written += len(text)
            number += 1
        file.write('{"ph": "M", "name": "end", "pid": 0}]}\n')
    return number


def write_profile(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("stage,instruction,frequency,time,energy\n")
        for stage in range(8):
            for name, work in (("forward", 1.0), ("backward", 2.0)):
                for clock in range(690, 1411, 48):
                    part = clock / 1410
                    seconds = 0.05 * work * (1 + 0.02 * stage) / part
                    watts = 90 + 310 * part**3
                    file.write(f"{stage},{name},{clock},{seconds},"
                               f"{watts * seconds}\n")


def run(name, command, folder):
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(command)}: {errors}")
    seconds = usage.ru_utime + usage.ru_stime
    print(f"| {name} | {seconds:.2f} s | {usage.ru_maxrss / 1024:.0f} MiB |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weir")
    parser.add_argument("--megabytes", type=int, default=1000)
    arguments = parser.parse_args()
    weir = os.path.abspath(arguments.weir)
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        steps = write_trace(trace, arguments.megabytes)
        write_profile(os.path.join(folder, "profile.csv"))
        print("| command | CPU time | memory |\n|---|---|---|")
        run(f"`import` of {os.path.getsize(trace) / 1e9:.2f} GB, {steps} steps",
            [weir, "import", "trace.json", "-o", "measured.pb"], folder)
        given = ["--costs", "f=1,b=2,c=0.1", "--pp", "64", "--microbatches",
                 "256"]
        run("`jitter`, 1F1B and GPipe on 64 ranks x 256 microbatches, "
            "10,000 samples",
            [weir, "jitter", "--schedule", "1f1b,gpipe", *given, "--jitter",
             "pass=lognormal:0.05", "--samples", "10000"], folder)
        run("`slack`, the same schedules",
            [weir, "slack", "--schedule", "1f1b,gpipe", *given], folder)
        run("`goodput`, 16,384 GPUs, 15.6 T tokens",
            [weir, "goodput", "--step-seconds", "28", "--num-gpus", "16384",
             "--tokens-per-step", "16e6", "--tokens", "15.6T",
             "--checkpoint-bytes", "5.7e12", "--checkpoint-bandwidth",
             "500e9"], folder)
        for microbatches in ("12", "96"):
            run(f"`energy`, 8 stages x {microbatches} microbatches, 16 clocks",
                [weir, "energy", "profile.csv", "--blocking-power", "83.64",
                 "--microbatches", microbatches], folder)


if __name__ == "__main__":
    main()
