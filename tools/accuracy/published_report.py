# SPDX-License-Identifier: Apache-2.0
"""Tables of the errors of published rows."""
import collections
import csv
import dataclasses
import statistics

import published_scenarios as scenarios

NAMES = {"NVIDIA NeMo / Megatron-Bridge performance summary": "Megatron-Bridge",
         "NVIDIA DGX Cloud performance recipes": "DGX Cloud",
         "BigScience BLOOM benchmarks": "BigScience BLOOM",
         "BigScience GPT-2 experiments": "BigScience GPT-2",
         "MPT training benchmarks": "MPT (LLM Foundry)",
         "NeMo 24.07 performance benchmarks": "NeMo 24.07",
         "ByteDance straggler artifact (OSDI 2025)": "ByteDance",
         "Perseus SOSP 2024 artifact": "Perseus",
         "NeMo Launcher A100": "NeMo Launcher"}
CLASSES = ("dense, 16 bits", "dense, FP8 and NVFP4", "context parallelism",
           "experts", "hybrids")

# No figure of these devices is fitted to a whole step.
UNFITTED = ("B200", "B300", "GB200", "GB300")

HEAD = """# Errors of published runs of 2021 to 2026

Written by `tools/accuracy/published_rows`; do not edit. It predicts the rows of
`published_2.csv`, a collection of 652 published step times, rates, memories and
verdicts, most of which are not part of this repository (`$WEIR_DATA`). To write
this page again:

```
tools/accuracy/published_rows $WEIR_DATA/published_2.csv build/release/bin/weir \\
    --markdown results/accuracy/published_2.md
```

Nothing is fitted to these rows by this program. The kernels and collectives of
the devices are fitted to microbenchmarks; the slowdowns of A100 and H100 are
fitted to whole steps, also of sources that are part of this table
([README.md](README.md) has the errors with each source left out). No figure of
B200, B300, GB200 and GB300 is fitted to a whole step, so that all their errors
are those of sources left out.

A row states model, device and layout. What it leaves out is taken from the
program's recipes of the same time (`tools/accuracy/published_recipes.csv`) and
from the scenarios of `results/published/sets/`. Errors are predicted / measured
- 1 of step times (rates are inverted) and of memory: above 0, a step is
predicted too slow. "inside" is the percentage of rows inside the interval that
should contain nine of ten. Rates in FLOP/s repeat the rate in tokens/s of their
run: they count as rows, but not as errors.

What the scenarios contain besides the tables: jobs on GB200 and GB300 use 64 of
the 72 GPUs of a rack (`--nvlink-domain 64`), expert tensor-parallel size 1, and
from the recipes recomputed modules, layouts, FP8 attention, CUDA graphs, dispatchers and
exchanges that overlap with another microbatch. Known causes of the remaining
errors:

- Containers differ: the same layout of Qwen3 30B on 16 H100 reaches 5,113
  tokens/s with 26.02 and 9,058 with 26.02.01, on 8 GB200 26,373 with 26.02.01
  and 40,706 with 26.06; gpt-oss on 64 GB300 33,166 with 26.06 and 20,288 with
  26.06.01. There is one prediction for all of them.
- Grouped MLPs with fused activations and casts are not simulated. The rates of
  permutations are assumptions (decision 57), and so are the launch times of the
  host: 12 us per kernel of a forward and 8 us of a backward. The host's time for
  modules, and how much slower a Grace CPU is, are those of one published benchmark
  of forwards (docs/runtimes.md); they do not explain the errors of hybrids.
- Nemotron 3 Super has the same recipe on GB200 and GB300 but for tensor-parallel
  size 2 and 1. Half the tokens per GPU and microbatch take 0.7 times as long as
  all of them, so that 0.2 to 0.3 s per microbatch do not depend on the tokens.
  weir finds no such time (decision 59).
- No GEMM of GB300 and B300 is published: their rates are those of GB200 and
  B200, in FP4 times the ratio of the peaks (assumptions with a spread of 20 to
  25 %). All dense rows of GB300 are predicted too slow.
- DGX Cloud's DeepSeek-V3 on GB200 (v25.05) is four times slower per GPU than
  Megatron-Bridge's on GB300 half a year later; the cause is not known.
"""


@dataclasses.dataclass
class Outcome:
    """A row with its error, or the reason for having none."""
    row: dict
    reason: str = ""
    kind: str = ""  # time, memory or verdict
    error: float = 0
    inside: bool = False
    repeats: bool = False
    measured: float = 0
    predicted: float = 0

    @property
    def source(self):
        return NAMES.get(self.row["source"], self.row["source"])

    @property
    def name(self):
        return " ".join((self.row["table"], self.row["model"],
                         self.row["n_gpus"], self.row["gpu"],
                         scenarios.precision_name(self.row)))


def errors_of(outcomes, kind="time"):
    return [one for one in outcomes
            if not one.reason and one.kind == kind and not one.repeats]


def statistics_of(outcomes):
    """Returns n, mean absolute error, bias, worst, share inside."""
    errors = [one.error for one in outcomes]
    return (len(errors), statistics.mean(map(abs, errors)),
            statistics.mean(errors), max(errors, key=abs),
            sum(one.inside for one in outcomes) / len(errors))


def table(head, outcomes, key):
    """Returns lines of a Markdown table with a line for each key."""
    groups = collections.defaultdict(list)
    for one in outcomes:
        groups[key(one)].append(one)
    lines = ["| " + " | ".join(
        head + ["rows", "mean abs. error", "bias", "worst", "inside"]) + " |",
        "|" + "---|" * (len(head) + 5)]
    for names, group in sorted(groups.items()):
        count, mean, bias, worst, inside = statistics_of(group)
        lines.append("| " + " | ".join(names) + f" | {count} | "
                     f"{100 * mean:.1f} % | {100 * bias:+.1f} % | "
                     f"{100 * worst:+.1f} % | {100 * inside:.0f} % |")
    return lines


def coverage(outcomes):
    lines = ["| source | rows | predicted | part |", "|---|---|---|---|"]
    groups = collections.defaultdict(list)
    for one in outcomes:
        groups[one.source].append(one)
    for name, group in sorted(groups.items()) + [("all", outcomes)]:
        done = sum(not one.reason for one in group)
        lines.append(f"| {name} | {len(group)} | {done} | "
                     f"{100 * done / max(len(group), 1):.0f} % |")
    return lines


def refusals(outcomes):
    reasons = collections.Counter((one.source, one.reason[:150])
                                  for one in outcomes if one.reason)
    if not reasons:
        return ["None."]
    return ["| source | rows | reason |", "|---|---|---|"] + [
        f"| {source} | {count} | {reason.replace('|', '/')} |"
        for (source, reason), count in sorted(reasons.items())]


def unsimulated(outcomes):
    """Returns the part of a recipe that a row's scenario lacks."""
    recipes = scenarios.load_recipes()
    return [one for one in outcomes
            if scenarios.recipe_of(one.row, recipes)[1]]


def sections(outcomes):
    """Returns (title, text, lines) of all tables."""
    times = errors_of(outcomes)
    rank = {name: f"{i}" for i, name in enumerate(CLASSES)}

    def by_class(one):
        return (scenarios.class_of(one.row),)

    yield "Coverage", "", coverage(outcomes)
    yield "Rows that are not predicted", "", refusals(outcomes)
    if times:
        lines = table(["class"], times, by_class)
        order = sorted(lines[2:], key=lambda line: rank[line.split(" | ")[0][2:]])
        yield "Step times by class", "", lines[:2] + order
        unseen = [one for one in times if one.row["gpu"] in UNFITTED]
        if unseen:
            lines = table(["class"], unseen, by_class)
            order = sorted(lines[2:],
                           key=lambda line: rank[line.split(" | ")[0][2:]])
            yield ("Step times by class on devices without a figure fitted to "
                   "steps", "", lines[:2] + order)
        yield "Step times by source", "", table(
            ["source"], times, lambda one: (one.source,))
        yield "Step times by source, class and device", "", table(
            ["source", "class", "device"], times,
            lambda one: (one.source, *by_class(one), one.row["gpu"]))
        experts = [one for one in times
                   if by_class(one)[0] in ("experts", "hybrids")]
        if experts:
            yield "Experts and hybrids by model", "", table(
                ["model", "device", "format"], experts,
                lambda one: (one.row["model"].replace(" proxy", ""),
                             one.row["gpu"],
                             scenarios.precision_name(one.row)))
        lacking = unsimulated(times)
        if lacking:
            yield ("Rows whose recipes have something that is not simulated",
                   "", table(["model", "not simulated"], lacking,
                             lambda one: (one.row["model"],
                                          scenarios.recipe_of(
                                              one.row,
                                              scenarios.load_recipes())[1])))
    memory = errors_of(outcomes, "memory")
    if memory:
        yield "Memory", "", table(["source", "format"], memory, lambda one: (
            one.source, one.row["precision"]))
    verdicts = errors_of(outcomes, "verdict")
    if verdicts:
        right = sum(one.error == 0 for one in verdicts)
        yield "Runs out of memory", (
            f"{right} of {len(verdicts)} are predicted not to fit."), []


def as_text(outcomes):
    text = []
    for title, sentence, lines in sections(outcomes):
        text += [title, ""] + ([sentence] if sentence else [])
        text += [line for line in lines if not line.startswith("|---")] + [""]
    done = sum(not one.reason for one in outcomes)
    text.append(f"{done} of {len(outcomes)} rows are predicted.")
    return "\n".join(text)


def as_markdown(outcomes):
    text = [HEAD]
    for title, sentence, lines in sections(outcomes):
        text += [f"## {title}", ""] + ([sentence] if sentence else [])
        text += lines + ([""] if lines else [""])
    return "\n".join(text).rstrip() + "\n"


def write_rows(path, outcomes):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["line", "source", "class", "name", "kind", "measured",
                         "predicted", "error", "inside", "reason"])
        for line, one in enumerate(outcomes, 2):
            writer.writerow([line, one.source, scenarios.class_of(one.row),
                             one.name, one.kind, f"{one.measured:.6g}",
                             f"{one.predicted:.6g}", f"{one.error:.4f}",
                             one.inside, one.reason])
