# SPDX-License-Identifier: Apache-2.0
"""Sweeps: all combinations of values of scenario fields."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from weir import _figures
from weir._command import (
    arguments_of,
    named_folder,
    read_bytes,
    run_worker,
    text_of,
    write_file,
)
from weir._values import counted
from weir.errors import InputError
from weir.results import frame_of, table_html
from weir.simulation import ScenarioLike, arguments_for

if TYPE_CHECKING:
    import pandas

Path = Union[str, "os.PathLike[str]"]
Axis = Union[str, int, float, Sequence[Any]]


def _grid(axes: Mapping[str, Axis]) -> str:
    if not isinstance(axes, Mapping):
        raise InputError(
            f'sweep: grid is {axes!r}, expected names and their values, as in {{"tp": [1, 2]}}',
            2,
        )
    return text_of("--grid", axes)


class SweepResult:
    """The points of a sweep. `folder` has their files, or is None."""

    def __init__(self, document: Dict[str, Any], folder: Optional[str], files: Dict[str, bytes]):
        self._document = document
        self._values: Dict[str, Any] = document["result"]
        self._files = files  # those of a temporary folder
        self.folder = folder

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        """Yields the folder of the sweep, or a copy of the temporary one."""
        if self.folder is not None:
            yield self.folder
            return
        with named_folder("sweep") as path:
            for name, contents in self._files.items():
                write_file(os.path.join(path, name), contents)
            yield path

    @property
    def points(self) -> List[Dict[str, Any]]:
        """One entry per point, with its settings and values."""
        return list(self._values["points"])

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The fastest point that fits in memory."""
        best: Optional[Dict[str, Any]] = self._values.get("best")
        return best

    def to_dict(self) -> Dict[str, Any]:
        """Returns the "result" of `weir collect --format json`."""
        return dict(self._values)

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a DataFrame with one row per point; needs pandas."""
        return frame_of(self.points)

    def draw(self, **flags: Any) -> _figures.Figure:
        """Returns a heat map; flags are those of `weir draw`, such as
        `fields="tp,pp"`."""
        with self._folder() as folder:
            return _figures.draw([folder], kind="heatmap", **flags)

    def report(self, path: Path) -> None:
        """Writes an HTML page with heat maps of all points."""
        with self._folder() as folder:
            run_worker(["collect", folder, "--report", os.fspath(path), "--force"])

    def __len__(self) -> int:
        return len(self._values["points"])

    def __getitem__(self, index: int) -> Dict[str, Any]:
        point: Dict[str, Any] = self._values["points"][index]
        return point

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.points)

    def __repr__(self) -> str:
        return f"<weir.SweepResult of {counted(len(self), 'point')}, best: {self.best}>"

    def _repr_html_(self) -> str:
        rows = self.points[:20]
        return table_html(rows, list(rows[0]) if rows else [])


_INSTEAD = {
    "out": "folder=, which keeps the points",
    "report": "report() of the result",
    "slurm": "the program weir on the command line, which jobs can start",
}


def sweep(
    scenario: ScenarioLike = None,
    grid: Optional[Mapping[str, Axis]] = None,
    *,
    method: str = "full",
    folder: Optional[Path] = None,
    **flags: Any,
) -> SweepResult:
    """Simulates all combinations of the values of the grid, in worker processes.

    `grid={"pp": [2, 4, 8], "schedule": ["1f1b", "zb-h1"]}` names flags or fields
    of the scenario; "fast" is a method with the same results. With a folder, the
    points are kept, and `resume=True` continues. Other flags are those of
    `weir sweep`.
    """
    with contextlib.ExitStack() as stack:
        if folder is None:
            path = stack.enter_context(named_folder("sweep"))
        else:
            path = os.fspath(folder)
        arguments = stack.enter_context(arguments_for(scenario, flags, _INSTEAD))
        base = [] if scenario is None else ["--scenario"]
        own = {"grid": _grid(grid) if grid else None, "method": method, "out": path}
        command = ["sweep", *base, *arguments, *arguments_of(own), "--quiet"]
        run_worker(command, negative=True)
        out, _ = run_worker(["collect", path, "--format", "json"])
        document = json.loads(arguments.shown(out))
        names = os.listdir(path) if folder is None else []
        files = {name: read_bytes(os.path.join(path, name)) for name in names}
    return SweepResult(document, None if folder is None else path, files)
