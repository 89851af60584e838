# SPDX-License-Identifier: Apache-2.0
"""Compiles a mutant and links programs with it, in a build folder of its own.

Only the mutated source is compiled: a program is linked again from existing
objects, with the mutant's object before the libraries, so that the linker never
takes the original out of its archive.
"""

import json
import os
import re
import shlex
import shutil
import subprocess


class BuildError(Exception):
    pass


def configure(root, folder):
    """Configures a build folder if there is none.

    Uses the settings of the preset "release", so that a compiler cache has the
    objects.
    """
    if os.path.exists(os.path.join(folder, "build.ninja")):
        return
    command = ["cmake", "-S", root, "-B", folder, "-G", "Ninja",
               "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON",
               "-DWEIR_WERROR=ON", "-DWEIR_CUDA=OFF", "-DWEIR_UNITY=OFF"]
    for name in ("lld", "gold"):
        if shutil.which(f"ld.{name}"):
            command.append(f"-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld={name}")
            break
    _call(command)


def build_all(folder):
    """Builds the programs of the unchanged tree."""
    _call(["ninja", "-C", folder])


def _call(command):
    if subprocess.run(command, stdout=2, check=False).returncode != 0:
        raise BuildError(f"failed: {shlex.join(command)}")


def _is_unity(path):
    return re.search(r"/Unity/unity_\d+_cxx\.cxx$", path) is not None


def _compiled_files(path):
    """Returns the sources that a unity source includes, else the source."""
    if not _is_unity(path):
        return [path]
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^#include "(\S+)"', file.read(), re.MULTILINE)


class Database:
    """The contents of compile_commands.json and build.ninja."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self._entries = {}
        path = os.path.join(folder, "compile_commands.json")
        try:
            with open(path, encoding="utf-8") as file:
                entries = json.load(file)
        except OSError as error:
            raise BuildError(f"{path}: {error.strerror}; configure with "
                             f"cmake -S {root} -B {folder} -G Ninja") from None
        for entry in entries:
            for file in _compiled_files(entry["file"]):
                self._entries.setdefault(os.path.relpath(file, root), entry)
        self._links = {}
        self._programs, self._archives = {}, {}
        self._sources = None

    def has(self, path):
        return path in self._entries

    def _words(self, path):
        if path not in self._entries:
            raise BuildError(f"{path}: is not compiled in {self.folder}")
        return shlex.split(self._entries[path]["command"])

    def object_of(self, path):
        words = self._words(path)
        return words[words.index("-o") + 1]

    def front_end_flags(self, path):
        """Returns the flags that determine how a source is parsed."""
        words = self._words(path)[1:]
        kept = []
        for word, after in zip(words, words[1:] + [""]):
            if word.startswith(("-I", "-D", "-std=", "-U")):
                kept.append(word)
            elif word == "-isystem":
                kept += [word, after]
        return kept

    def compile_command(self, path, source, output):
        """Returns the command that compiles `source` instead of `path`.

        If `path` is compiled together with others, a copy of the unity source
        is written beside `source`.
        The flags are those of the build folder, so that equal code gives equal
        objects. Warnings are no errors, as mutants leave variables unused,
        except for functions that end without a value, which is undefined
        behavior.
        """
        words = self._words(path)
        entry = self._entries[path]
        command = []
        skip = False
        for word in words:
            if skip or word == "-c":
                skip = False
            elif word == "-o":
                skip = True
            elif word not in (entry["file"], "-Werror") and not re.fullmatch(
                    r"-W\S+", word):
                command.append(word)
        prefix = os.path.dirname(source)
        original = os.path.join(self.root, path)
        if _is_unity(entry["file"]):
            with open(entry["file"], encoding="utf-8") as file:
                text = file.read().replace(f'"{original}"', f'"{source}"')
            source = os.path.join(prefix, os.path.basename(entry["file"]))
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
        return command + [
            "-Werror=return-type", "-o", output, "-c", source,
            f"-fmacro-prefix-map={prefix}={os.path.dirname(original)}"]

    def link_words(self, program):
        """Returns the words of the command that links a program."""
        if program not in self._links:
            shown = subprocess.run(
                ["ninja", "-C", self.folder, "-t", "commands", "-s", program],
                check=True, capture_output=True, text=True).stdout
            for part in shown.split(" && "):
                words = shlex.split(part)
                if "-o" in words and words[words.index("-o") + 1] == program:
                    self._links[program] = words
                    break
            else:
                raise BuildError(f"{program}: no link command is known")
        return self._links[program]

    def archive_of(self, path):
        """Returns the library that holds the object of a source."""
        self._read_targets()
        return self._archives[self.object_of(path)]

    def programs(self):
        """Returns the objects of each program, by the program's path."""
        self._read_targets()
        return self._programs

    def _read_targets(self):
        if self._programs:
            return
        with open(os.path.join(self.folder, "build.ninja"),
                  encoding="utf-8") as file:
            for line in file:
                found = re.match(
                    r"build (\S+).*?: CXX_(EXECUTABLE|STATIC_LIBRARY)_LINKER"
                    r"__\S+ ([^|]*)", line)
                if not found:
                    continue
                output, kind, objects = found.groups()
                if kind == "EXECUTABLE":
                    self._programs[output] = objects.split()
                else:
                    for obj in objects.split():
                        self._archives[obj] = output

    def sources_of(self, obj):
        """Returns the sources of an object of the folder."""
        if self._sources is None:
            self._sources = {}
            for path in self._entries:
                self._sources.setdefault(self.object_of(path), []).append(path)
        return self._sources.get(obj, [])

    def defines(self, path):
        return [w for w in self._words(path) if w.startswith("-D")]


def run(command, folder, seconds=600):
    """Runs a compiler or linker; returns its output if it fails, else None."""
    environment = dict(os.environ, CCACHE_DISABLE="1")
    try:
        done = subprocess.run(command, cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"took more than {seconds} s"
    return None if done.returncode == 0 else done.stdout.decode(
        errors="replace")


class Linker:
    def __init__(self, database):
        self._database = database

    def link(self, program, path, obj, output):
        """Links a program with `obj` in place of the object of `path`."""
        original = self._database.object_of(path)
        archive = self._database.archive_of(path)
        command = []
        placed = False
        words = self._database.link_words(program)
        for at, word in enumerate(words):
            if at > 0 and words[at - 1] == "-o":
                word = output
            elif word == original:
                word, placed = obj, True
            elif word == archive and not placed:
                command.append(obj)
                placed = True
            command.append(word)
        if not placed:
            raise BuildError(f"{program}: is not linked with {archive}")
        return run(command, self._database.folder)
