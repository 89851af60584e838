#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes files that a reader of the documents has from runs of their own.

make_inputs.py timeline FILE.json.gz [--replicas N] [--microbatches N] ...
    records steps of a 1F1B run as ByteDance's StragglerAnalysis does
make_inputs.py profile FILE.csv  passes at several clocks, as Perseus does
make_inputs.py gemms FILE.csv, make_inputs.py attention FILE.csv
    kernel times of a device
make_inputs.py events FILE.csv TRACE.json
    passes of one pipeline as CSV, 2 % slower than in a trace of weir
"""
import argparse
import gzip
import json
import random


def order_of(rank, ranks, microbatches):
    """Returns the passes of a rank in 1F1B's order."""
    warmup = min(ranks - rank - 1, microbatches)
    order = [("forward", m) for m in range(warmup)]
    for m in range(microbatches):
        if warmup + m < microbatches:
            order.append(("forward", warmup + m))
        order.append(("backward", m))
    return order


class Step:
    """Runs a step of one replica; times are seconds from its start."""

    def __init__(self, options, draws, factor):
        self.options, self.draws, self.factor = options, draws, factor
        self.ends = {}  # of (kind, rank, microbatch)
        self.events = []  # (rank, name, microbatch, start, end)

    def run(self):
        ranks = len(self.options.forward)
        orders = [order_of(r, ranks, self.options.microbatches) for r in range(ranks)]
        free, positions = [0.0] * ranks, [0] * ranks
        while any(positions[r] < len(orders[r]) for r in range(ranks)):
            for r in range(ranks):
                while positions[r] < len(orders[r]):
                    start = self.start(*orders[r][positions[r]], r, free[r])
                    if start is None:
                        break
                    free[r] = self.run_pass(*orders[r][positions[r]], r, free[r], start)
                    positions[r] += 1
        return free

    def source(self, kind, rank):
        """Returns the rank whose output a pass needs, or None."""
        source = rank - 1 if kind == "forward" else rank + 1
        return source if 0 <= source < len(self.options.forward) else None

    def start(self, kind, microbatch, rank, free):
        source = self.source(kind, rank)
        if source is None:
            return free
        end = self.ends.get((kind, source, microbatch))
        return None if end is None else max(free, end + self.options.hop)

    def run_pass(self, kind, microbatch, rank, free, start):
        source = self.source(kind, rank)
        if source is not None:
            sent = self.ends[kind, source, microbatch]
            arrives = max(sent, free) + self.options.hop
            start = max(start, arrives)
            self.events.append((source, f"{kind}-send", -1, sent, arrives))
            self.events.append((rank, f"{kind}-recv", -1, free, arrives))
        times = self.options.forward if kind == "forward" else self.options.backward
        noise = self.draws.lognormvariate(0, self.options.noise)
        end = start + times[rank] * self.factor * noise
        self.ends[kind, rank, microbatch] = end
        self.events.append((rank, f"{kind}-compute", microbatch, start, end))
        return end


def record(options):
    draws = random.Random(1)
    ranks = len(options.forward)
    events = [
        {"name": "thread_name", "ph": "M", "pid": replica, "tid": rank,
         "args": {"name": f"PP rank {rank}, TP rank 0, compute"}}
        for replica in range(options.replicas) for rank in range(ranks)]
    origin = 0.0
    for number in range(options.steps):
        ends = []
        for replica in range(options.replicas):
            slow = options.slow if replica == options.replicas - 1 else 1
            step = Step(options, draws, slow)
            ends += step.run()
            for rank, name, microbatch, start, end in step.events:
                events.append(
                    {"name": name, "ph": "X", "pid": replica, "tid": rank,
                     "ts": round(1e6 * (origin + start), 3),
                     "dur": round(1e6 * (end - start), 3),
                     "args": {"step": number, "mb_id": microbatch, "seq_id": 0,
                              "model_chunk": 0 if microbatch >= 0 else -1}})
        for replica in range(options.replicas):
            for rank in range(ranks):
                events.append(
                    {"name": "optimizer", "ph": "X", "pid": replica, "tid": rank,
                     "ts": round(1e6 * (origin + max(ends)), 3), "dur": 2e4,
                     "args": {"step": number, "mb_id": -1, "seq_id": 0,
                              "model_chunk": -1}})
        origin += max(ends) + 0.05
    with gzip.open(options.file, "wt", compresslevel=1) as file:
        file.write("[" + ",\n".join(map(json.dumps, events)) + "]\n")


def energy_profile(options):
    """Writes passes of eight stages, the last with the vocabulary."""
    with open(options.file, "w") as file:
        file.write("stage,instruction,frequency,time,energy\n")
        for stage in range(8):
            work = 1.1 if stage == 7 else 1 + 0.01 * (stage % 3)
            for instruction, seconds in (("forward", 0.047), ("backward", 0.096)):
                for clock in range(1410, 800, -75):
                    part = clock / 1410
                    time = work * seconds * (0.15 + 0.85 / part)
                    watts = 95 + 235 * part**2.6
                    file.write(f"{stage},{instruction},{clock},{time:.6f},"
                               f"{time * watts:.4f}\n")


def gemms(options):
    """Writes GEMMs of a device of 500 TFLOP/s; small ones are less efficient."""
    with open(options.file, "w") as file:
        file.write("m,n,k,dtype,latency_us\n")
        for m in (1024, 2048, 4096, 8192, 16384):
            for n, k in ((4096, 4096), (6144, 4096), (11008, 4096), (4096, 11008),
                         (8192, 8192), (28672, 8192)):
                flop = 2 * m * n * k
                seconds = flop / (0.78 * 500e12) + 8e-6
                file.write(f"{m},{n},{k},bf16,{1e6 * seconds:.2f}\n")


def attention(options):
    with open(options.file, "w") as file:
        file.write("pass,batch,heads,sequence_length,head_size,causal,latency_us\n")
        for length in (1024, 2048, 4096, 8192):
            for name, factor, part in (("forward", 2, 0.55), ("backward", 5, 0.45)):
                flop = factor * 32 * length * length * 128
                seconds = flop / (part * 500e12) + 12e-6
                file.write(f"{name},1,32,{length},128,yes,{1e6 * seconds:.2f}\n")


def events(options):
    """Writes the passes of a trace of weir, 2 % slower."""
    with open(options.trace) as file:
        trace = json.load(file)["traceEvents"]
    ranks = {e["pid"]: e["args"]["name"].split()[1] for e in trace
             if e["name"] == "process_name"}
    with open(options.file, "w") as file:
        file.write("rank,action,start_ms,end_ms\n")
        for e in trace:
            if e.get("cat") in ("compute", "optimizer"):
                start, end = 1.02e-3 * e["ts"], 1.02e-3 * (e["ts"] + e["dur"])
                file.write(f"{ranks[e['pid']]},{e['name']},{start:.3f},{end:.3f}\n")


def main():
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(required=True)
    for function, name in ((record, "timeline"), (energy_profile, "profile"),
                           (gemms, "gemms"), (attention, "attention"),
                           (events, "events")):
        kind = kinds.add_parser(name)
        kind.set_defaults(run=function)
        kind.add_argument("file")
        if name == "events":
            kind.add_argument("trace")
        if name == "timeline":
            def times(text):
                return [float(t) for t in text.split(",")]

            kind.add_argument("--forward", type=times, default=[0.1] * 4)
            kind.add_argument("--backward", type=times, default=[0.2] * 4)
            kind.add_argument("--hop", type=float, default=0.002)
            kind.add_argument("--noise", type=float, default=0.01)
            kind.add_argument("--microbatches", type=int, default=32)
            kind.add_argument("--replicas", type=int, default=1)
            kind.add_argument("--steps", type=int, default=5)
            kind.add_argument("--slow", type=float, default=1,
                              help="times of the last replica")
    options = parser.parse_args()
    options.run(options)


main()
