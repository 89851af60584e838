# SPDX-License-Identifier: Apache-2.0
"""The results so far, one line of CSV each, written immediately."""

import csv
import os

FIELDS = ("id", "file", "line", "operator", "original", "replacement",
          "verdict", "killed_by", "seconds")
# "equal": the object code equals the original's. "invalid": it does not
# compile. Neither counts in a sample.
VERDICTS = ("killed", "timeout", "survived", "equal", "invalid")


class Journal:
    def __init__(self, path):
        self._path = path
        self.rows = {}  # the last one of each id
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    # The last line may be incomplete.
                    if row.get("seconds") and row["verdict"] in VERDICTS:
                        self.rows[row["id"]] = row

    def verdict(self, mutant_id):
        row = self.rows.get(mutant_id)
        return row["verdict"] if row else None

    def kills(self):
        """Returns how many mutants each program has killed."""
        counts = {}
        for row in self.rows.values():
            if row["killed_by"]:
                program = row["killed_by"].split(":")[0]
                counts[program] = counts.get(program, 0) + 1
        return counts

    def append(self, mutant, verdict, killed_by, seconds):
        row = dict(zip(FIELDS, (
            mutant.id, mutant.path, str(mutant.line), mutant.operator,
            " ".join(mutant.original.split()),
            " ".join(mutant.replacement.split()), verdict, killed_by,
            f"{seconds:.1f}")))
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        is_new = not os.path.exists(self._path)
        with open(self._path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.rows[mutant.id] = row
