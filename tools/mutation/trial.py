# SPDX-License-Identifier: Apache-2.0
"""Builds single mutants and runs the tests on them."""

import atexit
import contextlib
import fcntl
import filecmp
import os
import shutil
import tempfile

from . import build
from . import programs


def kept_weir(folder):
    return os.path.join(folder, "mutation", "weir")


@contextlib.contextmanager
def locked_weir(folder):
    """Locks bin/weir for one process and restores the original at the end.

    Also restores it at the beginning, in case an earlier run was killed.
    """
    weir = os.path.join(folder, programs.WEIR)
    os.makedirs(os.path.join(folder, "mutation"), exist_ok=True)
    with open(os.path.join(folder, "mutation", "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        restore(folder, weir)
        try:
            yield weir
        finally:
            restore(folder, weir)


def restore(folder, weir):
    if os.path.exists(kept_weir(folder)):
        os.replace(kept_weir(folder), weir)


class Trials:
    """Determines the verdicts of single mutants.

    Several processes may share a build folder: each has its own work folder,
    and they take turns when weir itself is replaced.
    """

    def __init__(self, root, database, log, budget, note):
        self._root, self._database, self._log = root, database, log
        self._budget = self._left = budget
        self._folder = database.folder
        self._kept = os.path.join(self._folder, "mutation")
        self._work = tempfile.mkdtemp(prefix="run-", dir=self._kept)
        atexit.register(shutil.rmtree, self._work, ignore_errors=True)
        self._runner = programs.Runner(self._folder, self._work, note)
        self._linker = build.Linker(database)
        self._symbols = programs.Symbols(self._folder)
        self._programs = programs.test_programs(database)

    def _compile(self, mutant):
        """Returns the object of a mutant, or None if it does not compile."""
        with open(os.path.join(self._root, mutant.path), "rb") as file:
            source = file.read()
        path = os.path.join(self._work, os.path.basename(mutant.path))
        with open(path, "wb") as file:
            file.write(mutant.apply(source))
        obj = os.path.join(self._work, "mutant.o")
        found = build.run(self._database.compile_command(
            mutant.path, path, obj), self._folder)
        return obj if found is None else None

    def verdict(self, mutant):
        """Returns the verdict, and what killed the mutant."""
        obj = self._compile(mutant)
        if obj is None:
            return "invalid", ""
        original = os.path.join(self._folder,
                                self._database.object_of(mutant.path))
        if filecmp.cmp(original, obj, shallow=False):
            return "equal", ""
        self._left = self._budget
        return (self._linked(mutant, obj) or self._through_weir(mutant, obj) or
                ("survived", ""))

    def _tried(self, program, path):
        """Runs a program with a mutant if the budget allows it."""
        if self._left <= 0:
            return None
        begin = programs.children_cpu_seconds()
        found = self._runner.kills(program, path)
        self._left -= programs.children_cpu_seconds() - begin
        return found

    def _ordered(self, mutant, chosen):
        return programs.order(chosen, mutant.path, self._log.kills(),
                              self._runner.cpu_seconds)

    def _contains(self, program, mutant):
        return self._symbols.contains(program,
                                      self._database.object_of(mutant.path))

    def _linked(self, mutant, obj):
        """Runs the programs that are linked with the source."""
        chosen = [p for p in self._programs if not p.runs_weir and
                  self._contains(p.path, mutant)]
        for program in self._ordered(mutant, chosen):
            if self._left <= 0:
                return None
            self._runner.baseline(program)
            path = os.path.join(self._work, "program")
            self._link(program.path, mutant, obj, path)
            found = self._tried(program, path)
            if found is not None:
                return found
        return None

    def _through_weir(self, mutant, obj):
        """Runs the programs that start weir, built with the mutant."""
        chosen = [p for p in self._programs if p.runs_weir]
        if not chosen or self._left <= 0 or not self._contains(
                programs.WEIR, mutant):
            return None
        with locked_weir(self._folder) as weir:
            chosen = self._affordable(self._ordered(mutant, chosen))
            os.replace(weir, kept_weir(self._folder))
            self._link(programs.WEIR, mutant, obj, weir)
            for program in chosen:
                found = self._tried(
                    program, os.path.join(self._folder, program.path))
                if found is not None:
                    return found
        return None

    def _affordable(self, chosen):
        """Returns the first programs that fit the budget.

        Runs their baselines, which must be known before weir is replaced.
        """
        seconds = 0
        for at, program in enumerate(chosen):
            if seconds > self._left:
                return chosen[:at]
            self._runner.baseline(program)
            seconds += self._runner.cpu_seconds(program)
        return chosen

    def _link(self, program, mutant, obj, output):
        found = self._linker.link(program, mutant.path, obj, output)
        if found is not None:
            raise build.BuildError(f"{program}: cannot be linked with mutant "
                                   f"{mutant.id}: {found}")
