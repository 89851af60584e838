# SPDX-License-Identifier: Apache-2.0
"""The search for layouts."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Union

from weir import _figures
from weir._command import Worker
from weir._values import Values, counted
from weir.errors import NegativeResultError, WeirError, raise_for
from weir.results import Result, frame_of, table_html
from weir.simulation import ScenarioLike, arguments_for

if TYPE_CHECKING:
    import pandas

    from weir.messages import Scenario

Path = Union[str, "os.PathLike[str]"]


_SUMMARY = (
    "num_gpus",
    "tensor",
    "pipeline",
    "data",
    "expert",
    "chunks",
    "microbatch_size",
    "schedule",
    "recompute",
    "batch_seconds",
    "peak_memory_bytes",
    "gap",
)


class Plan(Values):
    """A layout with its time and memory.

    All values of a plan in `weir plan --format json` are attributes.
    """

    _NOUN = "a plan"

    @property
    def scenario(self) -> "Scenario":
        """The scenario of the plan, for `simulate`."""
        from weir.messages import Scenario

        return Scenario.from_textproto(self._values["scenario"], "plan")

    def simulate(self, **flags: Any) -> Result:
        """Simulates the plan."""
        from weir.simulation import simulate

        return simulate(self.scenario, **flags)

    def summary(self) -> Dict[str, Any]:
        """Returns the main values, for tables."""
        return {key: self._values[key] for key in _SUMMARY if key in self._values}

    def __repr__(self) -> str:
        row = self.summary()
        sizes = ", ".join(
            f"{key} {row[key]}" for key in ("tensor", "pipeline", "data") if key in row
        )
        return (
            f"<weir.Plan {row.get('schedule')}, {sizes}: {self.step_seconds:.6g} s, "
            f"{self.peak_memory_bytes / 2**30:.4g} GiB>"
        )


_PAPERS = "a search for layouts; weir plan on the command line has the planners of papers"
_INSTEAD = {
    "algorithm": _PAPERS,
    "explain": "rejected layouts of report() of the result",
    "graph": _PAPERS,
    "machines": _PAPERS,
    "report": "report() of the result",
    "stream": "the plans of the iterator",
}


class Planning(Iterator[Plan]):
    """A search that runs in worker processes.

    As an iterator it yields each plan that is better than those before, as soon
    as it is found and before the full simulation confirms it. `result()` waits
    for the end. Ctrl-C ends the search; `stop()` ends it and keeps the best
    plans so far. Threads may share a search; each plan is yielded to one of them.
    """

    def __init__(self, scenario: ScenarioLike, flags: Dict[str, Any]):
        self._files = contextlib.ExitStack()
        self._arguments = self._files.enter_context(arguments_for(scenario, flags, _INSTEAD))
        command = ["plan", *self._arguments, "--format", "json", "--stream", "--quiet"]
        self._worker = Worker(command)
        self._lines = self._worker.lines()
        # Guards the reading of lines and the end of the search.
        self._lock = threading.RLock()
        self._document: Optional[Dict[str, Any]] = None
        self._error: Optional[BaseException] = None
        self._ended = False
        self._stopped = False
        self._closed = False

    def __iter__(self) -> "Planning":
        return self

    def __next__(self) -> Plan:
        try:
            with self._lock:
                found = self._read()
        except BaseException:
            self.close()
            raise
        if found is None:
            raise StopIteration
        return found

    def _read(self) -> Optional[Plan]:
        """Returns the next plan, or None after the end."""
        if not self._ended:
            for line in self._lines:
                document: Dict[str, Any] = json.loads(self._arguments.shown(line))
                if "improved" in document:
                    return Plan(document["improved"])
                self._document = document
            self._end()
        if self._error is not None:
            raise self._error
        return None

    def _end(self) -> None:
        """Waits for the worker, which prints nothing more, and notes its error."""
        self._ended = True
        try:
            with self._files:
                code, err = self._worker.finish()
                # After stop(), the best plans so far are the result.
                if self._document is None:
                    if self._stopped and code in (130, -2):
                        code, err = 1, "error: the search was stopped before it found a plan"
                    raise_for(code or 70, self._arguments.shown(err))
        except (WeirError, KeyboardInterrupt) as error:
            self._error = error
        if self._closed:
            self._error = NegativeResultError("the search was closed before its end", 1)

    def stop(self) -> "PlanReport":
        """Ends the search and returns the best plans so far.

        Raises NegativeResultError if it has found none. May be called while
        another thread iterates or waits for the result, which then ends, too.
        """
        self._stopped = True
        self._worker.interrupt()
        return self.result()

    def close(self) -> None:
        """Ends the search without a result, unless it has ended."""
        if self._ended:
            return
        self._closed = True
        self._worker.kill()
        with self._lock:
            if not self._ended:
                self._end()

    def result(self) -> "PlanReport":
        """Waits for the end and returns the best plans."""
        for _ in self:
            pass
        assert self._document is not None
        return PlanReport(self._document)

    def __enter__(self) -> "Planning":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_worker", None) is not None:
            self.close()


class PlanReport:
    """The best plans of a search; for a Pareto front, all of it by time."""

    def __init__(self, document: Dict[str, Any]):
        self._document = document
        self._values: Dict[str, Any] = document["result"]
        self.plans = [Plan(values) for values in self._values["plans"]]
        self.warnings: List[str] = list(document["warnings"])

    @property
    def best(self) -> Plan:
        """The first plan."""
        return self.plans[0]

    @property
    def counts(self) -> Dict[str, int]:
        """What became of the candidates."""
        return dict(self._values["counts"])

    @property
    def end(self) -> str:
        """Why the search ended: "complete" if nothing better is left."""
        return str(self._values["end"])

    @property
    def lower_bound_seconds(self) -> float:
        """No plan of the space is faster."""
        return float(self._values["lower_bound_seconds"])

    def to_dict(self) -> Dict[str, Any]:
        """Returns the output of `weir plan --format json`."""
        return copy.deepcopy(self._document)

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a DataFrame with one row per plan; needs pandas."""
        return frame_of([plan.to_dict() for plan in self.plans])

    def draw(self, **flags: Any) -> _figures.Figure:
        """Returns the plans as points of time and memory (`against="cost"`: cost)."""
        text = json.dumps(self._document)
        return _figures.draw_file("plans.json", text, kind="pareto", **flags)

    def report(self, path: Path) -> None:
        """Writes an HTML page of the plans."""
        _figures.report_file("plans.json", json.dumps(self._document), path)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {plan!r}" for plan in self.plans)
        return f"<weir.PlanReport of {counted(len(self.plans), 'plan')}, end: {self.end}>{lines}"

    def _repr_html_(self) -> str:
        rows = [plan.summary() for plan in self.plans]
        return table_html(rows, list(rows[0]) if rows else [])


def plan(scenario: ScenarioLike = None, **flags: Any) -> Planning:
    """Searches for the best layout of a model on a cluster.

    Flags are those of `weir plan`, with underscores:
    `plan(model="llama-3-70b", cluster="dgx-h100", gpus=512, gbs=512)`. Returns
    at once; iterate over the improving plans, or call `result()`.
    """
    return Planning(scenario, flags)


__all__ = ["Plan", "PlanReport", "Planning", "plan"]
