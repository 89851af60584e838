# SPDX-License-Identifier: Apache-2.0
"""The command line, and the loop over mutants."""

import argparse
import difflib
import itertools
import os
import sys
import time

from . import build
from . import clang
from . import journal
from . import scope
from . import trial


class UsageError(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/mutate",
        description="Changes the code in one place at a time and runs the "
        "nearest tests: a change that no test detects shows a gap in the "
        "tests. Works in build/mutate and never changes the source tree.",
        epilog="Mutated: .cc files of sim/, schedules/, plan/ and the pricing "
        "code of calibrate/. Excluded: headers, arguments of calls that build "
        "messages, static_assert, and reserve().")
    parser.add_argument("path", nargs="*", metavar="PATH",
                        help="a source or folder (default: all in scope)")
    parser.add_argument("--count", type=int, default=200, metavar="N",
                        help="number of mutants in the sample (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="random seed of the sample (default: 1)")
    parser.add_argument("--list", action="store_true",
                        help="print the sample without running tests")
    parser.add_argument("--diff", metavar="ID",
                        help="print a mutant as a diff for \"git apply\"")
    parser.add_argument("--run", metavar="ID", nargs="+",
                        help="run these mutants, even if their results are known")
    parser.add_argument("--again", action="store_true",
                        help="run the sample's survivors again")
    parser.add_argument("--report", action="store_true",
                        help="print the known results without running tests")
    parser.add_argument("--build", metavar="DIR",
                        help="build folder (default: build/mutate)")
    parser.add_argument("--no-build", action="store_true",
                        help="use the existing test programs")
    parser.add_argument("--budget", metavar="SECONDS", type=float,
                        default=float("inf"),
                        help="CPU time limit per mutant, after which it counts as "
                        "a survivor (default: none)")
    parser.add_argument("--until", metavar="HH:MM",
                        help="start no mutant after this time today")
    given = parser.parse_args(arguments)
    if given.count < 1:
        parser.error(f"--count is {given.count}, expected 1 or more")
    return given


def diff_of(root, mutant):
    with open(os.path.join(root, mutant.path), "rb") as file:
        source = file.read()
    lines = [text.decode().splitlines(keepends=True)
             for text in (source, mutant.apply(source))]
    return "".join(difflib.unified_diff(
        *lines, f"a/{mutant.path}", f"b/{mutant.path}", n=2))


class Readable:
    """A catalogue that skips and reports sources libclang cannot parse."""

    def __init__(self, catalogue):
        self._catalogue = catalogue

    def mutants(self, path):
        try:
            return self._catalogue.mutants(path)
        except ValueError as error:
            say(f"left out: {error}")
            return []


def named(catalogue, paths, ids, log):
    """Returns the mutants with these ids.

    Searches the files that the journal has for them first.
    """
    known = {log.rows[i]["file"] for i in ids if i in log.rows}
    found = {}
    for path in sorted(paths, key=lambda p: (p not in known, p)):
        if len(found) == len(ids):
            break
        found.update((m.id, m) for m in catalogue.mutants(path) if m.id in ids)
    missing = [i for i in ids if i not in found]
    if missing:
        raise UsageError(f"{' '.join(missing)}: no mutant has this id; "
                         "tools/mutate --list prints them")
    return [found[i] for i in ids]


def report(root, mutants, log, count):
    """Prints the results of a sample; returns True if all were killed."""
    counts = dict.fromkeys(journal.VERDICTS, 0)
    survivors = []
    tried = 0
    for mutant in mutants:
        verdict = log.verdict(mutant.id)
        if tried == count:
            break
        if verdict is not None:
            counts[verdict] += 1
        if verdict in ("killed", "timeout", "survived"):
            tried += 1
        if verdict == "survived":
            survivors.append(mutant)
    for mutant in survivors:
        print(mutant.summary())
        print(diff_of(root, mutant))
    killed = counts["killed"] + counts["timeout"]
    percent = f", {100 * killed / tried:.1f} %" if tried else ""
    print(f"{tried} of {count} mutants: {killed} killed{percent} "
          f"({counts['timeout']} by a time limit), {len(survivors)} survived; "
          f"not counted: {counts['equal']} with equal object code, "
          f"{counts['invalid']} that do not compile")
    return not survivors


def try_mutants(trials, mutants, log, count, is_due, until):
    """Tries mutants until `count` survived or died; returns those passed."""
    tried = 0
    passed = []
    for mutant in mutants:
        passed.append(mutant)
        if is_due(mutant):
            if until and time.strftime("%H:%M") >= until:
                say(f"stopped at {until}")
                break
            begin = time.monotonic()
            verdict, killed_by = trials.verdict(mutant)
            seconds = time.monotonic() - begin
            log.append(mutant, verdict, killed_by, seconds)
            say(f"{tried + 1:4}  {verdict:8} {seconds:6.1f} s  "
                f"{mutant.summary()}{'  by ' + killed_by if killed_by else ''}")
        tried += log.verdict(mutant.id) not in ("equal", "invalid")
        if tried >= count:
            break
    return passed


def run(root, given):
    folder = os.path.abspath(given.build or os.path.join(root, "build/mutate"))
    clang.load()
    build.configure(root, folder)
    database = build.Database(root, folder)
    paths = [os.path.relpath(os.path.abspath(p), root) for p in given.path]
    chosen = [p for p in scope.sources(root, paths) if database.has(p)]
    if not chosen:
        raise UsageError(f"{' '.join(given.path)}: no source in scope is there;"
                         " see tools/mutate --help")
    kept = os.path.join(folder, "mutation")
    catalogue = Readable(scope.Catalogue(root, os.path.join(kept, "edits"),
                                         database))
    log = journal.Journal(os.path.join(kept, "journal.csv"))
    if given.diff:
        found = named(catalogue, chosen, [given.diff], log)
        print(diff_of(root, found[0]), end="")
        return 0
    if given.run:
        mutants = named(catalogue, chosen, given.run, log)
        count = len(mutants)
    else:
        mutants = scope.sample(root, catalogue, chosen, given.seed)
        count = given.count
    if given.list:
        for mutant in itertools.islice(mutants, count):
            print(mutant.summary())
        return 0
    if given.report:
        mutants = itertools.islice(mutants, len(log.rows))
    else:
        with trial.locked_weir(folder):
            if not given.no_build:
                build.build_all(folder)
        trials = trial.Trials(root, database, log, given.budget, say)

        def is_due(mutant):
            verdict = log.verdict(mutant.id)
            return (verdict is None or bool(given.run) or
                    (given.again and verdict == "survived"))

        mutants = try_mutants(trials, mutants, log, count, is_due,
                              given.until)
    return 0 if report(root, mutants, log, count) else 1


def main(root, arguments):
    try:
        return run(root, parse(arguments))
    except clang.MissingLibclang as error:
        say(str(error))
        return 3
    except UsageError as error:
        say(f"error: {error}")
        return 2
    except build.BuildError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped; the results so far are kept")
        return 130
