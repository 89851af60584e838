# SPDX-License-Identifier: Apache-2.0
"""The test programs: their selection for a source, order and execution."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

WEIR = "bin/weir"
LIMIT_SECONDS = 600  # limit per program with the unchanged code
MEMORY_BYTES = 8 << 30


class Program:
    def __init__(self, database, path, sources):
        self.path = path
        self.sources = sources
        self.folders = {os.path.dirname(s) for s in sources}  # tests/sim
        # Whether it runs bin/weir instead of linking with the code under test.
        self.runs_weir = any(d.startswith("-DWEIR_PROGRAM=") and d.endswith(
            f"{WEIR}\"") for s in sources for d in database.defines(s))
        self.stems = {re.sub(r"_test$", "", os.path.splitext(
            os.path.basename(s))[0]) for s in sources}
        self.includes = set()
        for source in sources:
            with open(os.path.join(database.root, source),
                      encoding="utf-8") as file:
                self.includes.update(re.findall(
                    r'^#include "(\S+)\.h"', file.read(), re.MULTILINE))


def children_cpu_seconds():
    """Returns the CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_programs(database):
    """Returns the GoogleTest programs in the build folder."""
    found = []
    for path, objects in sorted(database.programs().items()):
        sources = [s for o in objects for s in database.sources_of(o)
                   if s.startswith("tests/")]
        if any(s.endswith("_test.cc") for s in sources) and os.path.exists(
                os.path.join(database.folder, path)):
            found.append(Program(database, path, sources))
    return found


class Symbols:
    """Finds programs that contain an object, by the functions it defines."""

    def __init__(self, folder):
        self._folder = folder
        self._known = {}

    def _defined(self, path):
        if path not in self._known:
            shown = subprocess.run(
                ["nm", "--defined-only", "--extern-only", path],
                cwd=self._folder, capture_output=True, text=True, check=False)
            self._known[path] = {
                line.split()[-1] for line in shown.stdout.splitlines()
                if " T " in line}
        return self._known[path]

    def contains(self, program, obj):
        functions = self._defined(obj)
        return not functions or bool(functions & self._defined(program))


class Runner:
    """Runs programs with limits of time and memory in a scratch folder."""

    def __init__(self, folder, work, notes):
        self._folder = folder
        self._scratch = os.path.join(work, "scratch")
        self._path = os.path.join(folder, "mutation", "programs.json")
        self._note = notes
        self._known = {}
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                self._known = json.load(file)

    def cpu_seconds(self, program):
        """Returns the time of the unchanged program; a guess if unknown."""
        return self._known.get(program.path, {}).get("cpu_seconds", 3)

    def _start(self, arguments, seconds):
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.makedirs(self._scratch)
        environment = dict(os.environ, TMPDIR=self._scratch,
                           TEST_TMPDIR=self._scratch)

        def limits():
            resource.setrlimit(resource.RLIMIT_AS,
                               (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        child = subprocess.Popen(
            arguments, cwd=self._scratch, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=limits)
        try:
            output, _ = child.communicate(timeout=seconds)
            return child.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            # Children that it left behind hold the pipe, too.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()

    def _run_suites(self, path, seconds, without=(), fail_fast=False):
        """Runs each suite in a process of its own, as ctest does."""
        end = time.monotonic() + seconds
        status, listing = self._start([path, "--gtest_list_tests"], seconds)
        if status != 0:
            return status, listing
        arguments = [path, "--gtest_brief=1"]
        if fail_fast:
            arguments.append("--gtest_fail_fast")
        worst, outputs = 0, []
        for suite in re.findall(r"^([A-Za-z_]\S*\.)", listing, re.MULTILINE):
            status, output = self._start(
                [*arguments,
                 f"--gtest_filter={suite}*-{':'.join(without)}"],
                end - time.monotonic())
            outputs.append(output)
            if status != 0:
                worst = status
            if status is None or (fail_fast and status != 0):
                break
        return worst, "\n".join(outputs)

    def baseline(self, program):
        """Returns the results of the unchanged program; runs it only once."""
        if program.path in self._known:
            return self._known[program.path]
        begin, begin_cpu = time.monotonic(), children_cpu_seconds()
        status, output = self._run_suites(
            os.path.join(self._folder, program.path), LIMIT_SECONDS)
        failed = sorted(set(re.findall(
            r"^\[  FAILED  \] (\w\S*\.\S+?),? ", output + " ", re.MULTILINE)))
        known = {"seconds": round(time.monotonic() - begin, 2),
                 "cpu_seconds": round(children_cpu_seconds() - begin_cpu, 2),
                 "without": failed, "runs": status == 0 or bool(failed)}
        if status is None:
            self._note(f"{program.path}: left out: takes more than "
                       f"{LIMIT_SECONDS} s with the unchanged code")
        elif not known["runs"]:
            self._note(f"{program.path}: left out: ends with {status} with the "
                       f"unchanged code")
        elif failed:
            self._note(f"{program.path}: fails with the unchanged code and is "
                       f"run without {', '.join(failed)}")
        self._known[program.path] = known
        with open(self._path + ".new", "w", encoding="utf-8") as file:
            json.dump(self._known, file, indent=1, sort_keys=True)
        os.replace(self._path + ".new", self._path)
        return known

    def kills(self, program, path):
        """Runs a program with a mutant; returns what killed it, or None."""
        known = self.baseline(program)
        if not known["runs"]:
            return None
        status, output = self._run_suites(
            path, 60 + 10 * known["seconds"], known["without"], fail_fast=True)
        if status == 0:
            return None
        if status is None:
            return "timeout", program.path
        found = re.search(r"^\[  FAILED  \] (\w\S*\.[\w/]+)", output,
                          re.MULTILINE)
        what = found.group(1) if found else f"ends with {status}"
        return "killed", f"{program.path}: {what}"


def order(programs, path, kills, cpu_seconds):
    """Returns the programs in the order in which they run for a source.

    Nearest first: programs named after the source, those that include its
    header, those of its folder, then all others; within each group, those that
    have killed the most mutants per time.
    """
    stem = os.path.splitext(path)[0]
    folder = os.path.dirname(path)

    def distance(program):
        if f"tests/{folder}" in program.folders and (
                os.path.basename(stem) in program.stems):
            return 0
        if stem in program.includes:
            return 1
        if f"tests/{folder}" in program.folders:
            return 2
        if any(f.split("/")[1:2] == folder.split("/")[:1]
               for f in program.folders):
            return 3
        return 4

    def key(program):
        gain = (kills.get(program.path, 0) + 0.5) / (cpu_seconds(program) + 1)
        return distance(program), -gain, program.path

    return sorted(programs, key=key)
