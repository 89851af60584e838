# SPDX-License-Identifier: Apache-2.0
"""The sources that are mutated, and the ids of their mutants."""

import hashlib
import json
import os
import re

from . import clang
from . import operators

FOLDERS = ("sim", "schedules", "plan")
# The pricing code, which converts FLOP and bytes to seconds and shares.
PRICING = re.compile(
    r"^calibrate/(pricing/.*|profile/(collective_model|gemm_model"
    r"|partition_slowdown))\.cc$")


class Mutant:
    """One edit of one source.

    The id depends on the text of the line and not on its number, so that it
    does not change with other lines of the source.
    """

    def __init__(self, path, source, edit, ordinal):
        self.path = path
        self.operator = edit.operator
        self.start, self.end = edit.start, edit.end
        self.replacement = edit.text
        self.original = source[edit.start:edit.end].decode()
        self.line = source.count(b"\n", 0, edit.start) + 1
        begin = source.rfind(b"\n", 0, edit.start) + 1
        self.column = edit.start - begin + 1
        key = "\0".join((path, edit.operator, self._line_text(source),
                         self.original, edit.text, str(ordinal)))
        self.id = hashlib.sha256(key.encode()).hexdigest()[:10]

    def _line_text(self, source):
        begin = source.rfind(b"\n", 0, self.start) + 1
        end = source.find(b"\n", self.start)
        return source[begin:end].decode().strip()

    def apply(self, source):
        # Keeps the number of lines, for messages with line numbers.
        lost = self.original.count("\n") - self.replacement.count("\n")
        return (source[:self.start] + self.replacement.encode() +
                b"\n" * lost + source[self.end:])

    def summary(self):
        def short(text):
            text = " ".join(text.split())
            return text if len(text) <= 60 else text[:57] + "..."
        return (f"{self.id}  {self.path}:{self.line}:{self.column}  "
                f"{self.operator}: {short(self.original)} -> "
                f"{short(self.replacement) or 'nothing'}")


def mutants_of(path, source, edits):
    seen = {}
    mutants = []
    for edit in edits:
        mutant = Mutant(path, source, edit, 0)
        count = seen[mutant.id] = seen.get(mutant.id, -1) + 1
        if count > 0:
            mutant = Mutant(path, source, edit, count)
        mutants.append(mutant)
    return mutants


def sources(root, given):
    """Returns the sources in scope below the given paths, sorted."""
    found = []
    for folder in FOLDERS + ("calibrate",):
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(where, name), root)
                if not path.endswith(".cc"):
                    continue
                if folder == "calibrate" and not PRICING.match(path):
                    continue
                if not given or any(path == g or path.startswith(g + "/")
                                    for g in given):
                    found.append(path)
    return sorted(found)


class Catalogue:
    """The mutants of sources, cached in a folder until a source changes."""

    def __init__(self, root, folder, database):
        self._root, self._folder = root, folder
        self._database = database
        self._parser = None
        with open(operators.__file__, "rb") as file:
            self._version = hashlib.sha256(file.read()).hexdigest()

    def mutants(self, path):
        with open(os.path.join(self._root, path), "rb") as file:
            source = file.read()
        digest = hashlib.sha256(self._version.encode() + source).hexdigest()
        kept = os.path.join(self._folder, path.replace("/", "__") + ".json")
        edits = self._load(kept, digest)
        if edits is None:
            edits = self._find(path, source)
            os.makedirs(self._folder, exist_ok=True)
            with open(kept + ".new", "w", encoding="utf-8") as file:
                json.dump({"digest": digest, "edits": edits}, file)
            os.replace(kept + ".new", kept)
        return mutants_of(path, source, edits)

    @staticmethod
    def _load(kept, digest):
        try:
            with open(kept, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return None
        if found.get("digest") != digest:
            return None
        return [operators.Edit(*edit) for edit in found["edits"]]

    def _find(self, path, source):
        if self._parser is None:
            self._parser = clang.Parser(self._database)
        unit = self._parser.parse(path)
        return operators.find_edits(clang.load(), unit,
                                    os.path.join(self._root, path), source)


def _in_order(seed, items, key):
    """Sorts by a hash, so that the relative order of items never changes."""
    return sorted(items, key=lambda item: hashlib.sha256(
        f"{seed}:{key(item)}".encode()).digest())


BYTES_PER_SLOT = 500


def sample(root, catalogue, paths, seed):
    """Yields the mutants of sources in the order in which a sample takes them.

    Each source has one slot per BYTES_PER_SLOT bytes. Slots are visited in
    random order, and a source is parsed at its first slot. A change of one
    source moves no mutant of another into or out of a sample. Mutants that
    remain after all slots come last.
    """
    slots = [(path, number) for path in paths for number in range(
        os.path.getsize(os.path.join(root, path)) // BYTES_PER_SLOT + 1)]
    left = {}
    for path, _ in _in_order(seed, slots, lambda s: f"{s[0]}:{s[1]}"):
        if path not in left:
            left[path] = _in_order(seed, catalogue.mutants(path),
                                   lambda m: m.id)
        if left[path]:
            yield left[path].pop(0)
    for path in paths:
        yield from left[path]
