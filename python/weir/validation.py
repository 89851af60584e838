# SPDX-License-Identifier: Apache-2.0
"""Predictions against measured runs, and reports."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Union

from weir import _figures
from weir._command import arguments_of, name_argument, named_text, run_worker
from weir._values import counted
from weir.results import frame_of, table_html, warnings_html
from weir.simulation import ScenarioLike, arguments_for

if TYPE_CHECKING:
    import pandas

Path = Union[str, "os.PathLike[str]"]


class Validation:
    """Predictions of measured runs, with their errors."""

    def __init__(self, document: Dict[str, Any], csv: str):
        self._document = document
        self._values: Dict[str, Any] = document["result"]
        self._csv = csv

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """One entry per measured number, with prediction and error."""
        return list(self._values["numbers"])

    @property
    def statistics(self) -> List[Dict[str, Any]]:
        """Mean error, bias and worst row of each quantity."""
        return list(self._values["statistics"])

    @property
    def warnings(self) -> List[str]:
        """What to know before relying on the comparison, such as runs that could
        not be simulated."""
        skipped = [
            f"line {run['line']} could not be simulated: {run['reason']}"
            for run in self._values["skipped"]
        ]
        return [*self._document["warnings"], *skipped]

    def to_dict(self) -> Dict[str, Any]:
        """Returns the "result" of `weir validate --format json`."""
        return dict(self._values)

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a DataFrame with one row per number; needs pandas."""
        return frame_of(self.rows)

    def draw(self, **flags: Any) -> _figures.Figure:
        """Returns predictions against measurements."""
        return _figures.draw_file("errors.csv", self._csv, kind="errors", **flags)

    def __repr__(self) -> str:
        runs = counted(self._values["num_runs"], "run")
        skipped = len(self._values["skipped"])
        if skipped > 0:
            runs = f"{self._values['num_runs'] - skipped} of {runs}"
        return f"<weir.Validation of {runs}>"

    def _repr_html_(self) -> str:
        rows = self.rows
        text = table_html(rows, list(rows[0]) if rows else [])
        return text + warnings_html(self.warnings)


_INSTEAD = {"all": "rows of the result"}


def validate(measured: Any, scenario: ScenarioLike = None, **flags: Any) -> Validation:
    """Compares predictions with measured runs, in worker processes.

    `measured` is the path of a CSV, or a DataFrame; see
    docs/check-your-own-runs.md. Settings that its rows do not give come from the
    scenario and from flags of `weir validate`.
    """
    with arguments_for(scenario, {}, {}) as arguments, contextlib.ExitStack() as stack:
        if hasattr(measured, "to_csv"):
            table = measured.to_csv(index=False)
            measured = stack.enter_context(named_text("measured.csv", table))
            arguments.add_file(measured, "measured")
        if arguments:
            flags = {"scenario": arguments[0], **flags}
        command = ["validate", *arguments_of({"measured": measured, **flags}, _INSTEAD)]
        out, _ = run_worker([*command, "--format", "json"], negative=True)
        csv, _ = run_worker([*command, "--format", "csv"], negative=True)
    return Validation(json.loads(arguments.shown(out)), arguments.shown(csv))


def report(stored: Path, path: Path) -> None:
    """Writes the HTML page of a stored file: of --out, of --format json, or the
    folder of a sweep."""
    run_worker(["report", name_argument(stored), "--output", os.fspath(path), "--force"])
