# SPDX-License-Identifier: Apache-2.0
"""Results of simulations."""

from __future__ import annotations

import html
import os
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    Union,
    overload,
)

from weir import _figures
from weir._command import Flag, arguments_of, named_text, run_worker, write_file
from weir._values import Values, counted

if TYPE_CHECKING:
    import pandas

    from weir.messages import Scenario

Path = Union[str, "os.PathLike[str]"]


def frame_of(rows: Sequence[Dict[str, Any]]) -> "pandas.DataFrame":
    """Returns rows as a DataFrame; needs pandas."""
    import pandas

    return pandas.DataFrame(list(rows))


def table_html(rows: Sequence[Dict[str, Any]], columns: Sequence[str]) -> str:
    """Returns an HTML table."""

    def cell(value: Any) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return f"<td>{html.escape(text)}</td>"

    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(cell(row.get(name, "")) for name in columns) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def warnings_html(warnings: Sequence[str]) -> str:
    """Returns one paragraph per warning."""
    return "".join(f"<p>warning: {html.escape(warning)}</p>" for warning in warnings)


class Result(Values):
    """One simulation. All values of `weir simulate --format json` are attributes."""

    _NOUN = "a result"

    def __init__(
        self,
        values: Dict[str, Any],
        stored: Optional[bytes] = None,
        warnings: Sequence[str] = (),
    ):
        super().__init__(values)
        self._stored = stored
        self._warnings = list(warnings) or list(values.get("warnings", []))

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self._values["name"])

    @property
    def schedule(self) -> str:
        """The schedule's name."""
        return str(self._values["schedule"])

    @property
    def makespan_seconds(self) -> float:
        """Time of the whole simulated run."""
        return float(self._values["makespan_seconds"])

    @property
    def fits_memory(self) -> bool:
        """Whether every GPU has enough memory."""
        return bool(self._values["fits_memory"])

    @property
    def idle_ratio(self) -> float:
        """Idle fraction of all GPUs."""
        return float(self._values["idle_ratio"])

    @property
    def tokens_per_second(self) -> Optional[float]:
        """Throughput; None with given costs."""
        value = self._values.get("tokens_per_second")
        return None if value is None else float(value)

    @property
    def model_flops_utilization(self) -> Optional[float]:
        """MFU; None with given costs."""
        value = self._values.get("model_flops_utilization")
        return None if value is None else float(value)

    @property
    def ranks(self) -> List[Dict[str, Any]]:
        """One entry per simulated GPU or group of equal GPUs."""
        return list(self._values["ranks"])

    @property
    def warnings(self) -> List[str]:
        """What to know before relying on the result."""
        return list(self._warnings)

    @property
    def scenario(self) -> "Scenario":
        """The scenario with all defaults filled in."""
        from weir.messages import Scenario

        return Scenario.from_textproto(self._values["provenance"]["scenario"])

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a DataFrame with one row per rank; needs pandas."""
        return frame_of(self.ranks)

    def _file(self) -> bytes:
        if self._stored is None:
            raise ValueError(
                "this result has no timeline, expected one of simulate(timeline=True)"
            )
        return self._stored

    def draw(self, kind: str = "timeline", **flags: Flag) -> _figures.Figure:
        """Returns a figure; kinds and flags are those of `weir draw`."""
        return _figures.draw_file("result.pb", self._file(), kind=kind, **flags)

    def report(self, path: Path) -> None:
        """Writes an HTML page with timeline, memory and idle time."""
        _figures.report_file("result.pb", self._file(), path)

    def trace(self, path: Path, **flags: Flag) -> None:
        """Writes the timeline: .pftrace (ui.perfetto.dev), .json or .svg."""
        options = arguments_of(flags, {"output": "the path as first argument"})
        with named_text("result.pb", self._file()) as stored:
            run_worker(["trace", stored, "--output", os.fspath(path), "--force", *options])

    def save(self, path: Path) -> None:
        """Writes the file that `weir simulate --out` writes."""
        write_file(path, self._file())

    def __repr__(self) -> str:
        name = f"{self.name} {self.schedule}".strip()
        # Leaves out the memory of given costs that have no bytes.
        peak = self.peak_memory_bytes
        memory = f", {peak / 2**30:.4g} GiB" if peak > 0 else ""
        fits = "" if self.fits_memory else ", does not fit in memory"
        return f"<weir.Result {name}: {self.step_seconds:.6g} s{memory}{fits}>"

    _SUMMARY = (
        ("step_seconds", "batch_seconds"),
        ("tokens_per_second", "tokens_per_second"),
        ("MFU", "model_flops_utilization"),
        ("idle_ratio", "idle_ratio"),
        ("peak_memory_bytes", "peak_memory_bytes"),
        ("fits_memory", "fits_memory"),
    )

    def summary(self) -> Dict[str, Any]:
        """Returns the main values, for tables."""
        row = {"schedule": self.schedule}
        for name, key in self._SUMMARY:
            if self._values.get(key) is not None:
                row[name] = self._values[key]
        return row

    def _repr_html_(self) -> str:
        row = self.summary()
        text = table_html([row], list(row))
        text = f"<p><b>{html.escape(self.name)}</b></p>{text}"
        if self._stored is not None:
            text += str(self.draw())
        return text + warnings_html(self._warnings)


class Comparison(Sequence[Result]):
    """Several schedules of one scenario, as `compare` lists them."""

    def __init__(
        self,
        results: Sequence[Result],
        warnings: Sequence[str] = (),
        stored: Optional[bytes] = None,
    ):
        self._results = list(results)
        self._stored = stored
        self.warnings = list(warnings)

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, index: Union[int, str]) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> List[Result]: ...
    def __getitem__(self, index: Any) -> Union[Result, List[Result]]:
        if isinstance(index, str):
            for result in self._results:
                if result.schedule == index:
                    return result
            raise KeyError(index)
        found: Union[Result, List[Result]] = self._results[index]
        return found

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @property
    def fastest(self) -> Result:
        """The fastest that fits in memory, or else the fastest."""
        fitting = [result for result in self._results if result.fits_memory]
        return min(fitting or self._results, key=lambda result: result.step_seconds)

    def to_dict(self) -> List[Dict[str, Any]]:
        """Returns the "results" of `weir compare --format json`."""
        return [result.to_dict() for result in self._results]

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a DataFrame with one row per schedule; needs pandas."""
        return frame_of([result.summary() for result in self._results])

    def report(self, path: Path) -> None:
        """Writes an HTML page of all schedules."""
        assert self._stored is not None
        _figures.report_file("results.pb", self._stored, path)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {result!r}" for result in self._results)
        return f"<weir.Comparison of {counted(len(self), 'schedule')}>{lines}"

    def _repr_html_(self) -> str:
        rows = [result.summary() for result in self._results]
        return table_html(rows, list(rows[0]) if rows else [])
