# SPDX-License-Identifier: Apache-2.0
"""Schedules: the order of each rank's passes."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import numbers
import os
import re
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union, cast, overload

from weir import _figures
from weir._command import Flag, arguments_of, name_argument, named_text, run_here, write_file
from weir._values import counted
from weir.errors import InputError, messages_of

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """What the linter found. Parts that it does not have are None or empty."""

    severity: str
    rule: str
    message: str
    rank: Optional[int] = None
    position: Optional[int] = None
    advice: str = ""
    cycle: Sequence[str] = ()
    reordering: str = ""


class LintReport(Sequence[Finding]):
    """Findings, errors first. True if there are no errors."""

    def __init__(self, values: Dict[str, Any]):
        self._values = values
        known = {field.name for field in dataclasses.fields(Finding)}
        self._findings = [
            Finding(**{key: value for key, value in finding.items() if key in known})
            for finding in values["findings"]
        ]

    def __len__(self) -> int:
        return len(self._findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> List[Finding]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Finding, List[Finding]]:
        return self._findings[index]

    def __bool__(self) -> bool:
        return self.num_errors == 0

    @property
    def num_errors(self) -> int:
        """How many findings are errors."""
        return int(self._values["errors"])

    @property
    def num_notes(self) -> int:
        """How many findings are notes."""
        return int(self._values["notes"])

    def to_dict(self) -> Dict[str, Any]:
        """Returns the "result" of `weir schedule lint --format json`."""
        return dict(self._values)

    def __repr__(self) -> str:
        lines = "".join(
            f"\n  {finding.severity} [{finding.rule}]: {finding.message}"
            for finding in self._findings
        )
        errors = counted(self.num_errors, "error")
        notes = counted(self.num_notes, "note")
        return f"<weir.LintReport: {errors}, {notes}>{lines}"


Action = Union[str, "tuple[int, str, int]"]


def _text_of(action: Action, rank: int) -> str:
    if isinstance(action, str):
        return action
    if not isinstance(action, (tuple, list)) or len(action) != 3:
        raise InputError(
            f"schedule: ranks[{rank}] has {action!r}, expected actions as text (2F0) or "
            '(stage, "F", microbatch)',
            2,
        )
    stage, op, microbatch = action
    return f"{stage}{op}{microbatch}"


def _texts_of(actions: Iterable[Action], rank: int) -> List[str]:
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise InputError(
            f"schedule: ranks[{rank}] is {actions!r}, expected a sequence of actions", 2
        )
    return [_text_of(action, rank) for action in actions]


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"schedule: {name} is {value!r}, expected a whole number from 1", 2)


def _name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function, or of the class of another callable."""
    while isinstance(function, functools.partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.replace("_", "-")


class Schedule:
    """A schedule as data. Actions have PyTorch's text form: 2F0 is the forward
    of microbatch 0 in stage 2; B is its backward, I and W are the two parts."""

    def __init__(self, ranks: Sequence[Iterable[Action]], name: str = "schedule"):
        """Returns the schedule of these orders of passes, one for each rank.

        An action is text or (stage, "F", microbatch). What runs where follows
        from the orders; see docs/schedule-files.md.
        """
        self.name = name
        self._json: Optional[str] = None
        self._ranks = [_texts_of(actions, rank) for rank, actions in enumerate(ranks)]

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Iterable[Action]],
        num_ranks: int,
        num_microbatches: int,
        name: Optional[str] = None,
    ) -> "Schedule":
        """Returns the schedule whose rank r runs
        `function(r, num_ranks, num_microbatches)`."""
        _check_count("num_ranks", num_ranks)
        _check_count("num_microbatches", num_microbatches)
        ranks = [function(rank, num_ranks, num_microbatches) for rank in range(num_ranks)]
        return cls(ranks, name or _name_of(function))

    @classmethod
    def load(cls, name_or_path: Path, **flags: Flag) -> "Schedule":
        """Generates a schedule (`weir.schedules()`), or reads a CSV or JSON file.

        Flags are those of `weir schedule show`: `pp=4`, `microbatches=8`.
        """
        arguments = [name_argument(name_or_path), *arguments_of(flags)]
        out, _ = run_here(["schedule", "show", *arguments, "--format", "json"])
        return cls.from_json(out)

    @classmethod
    def from_json(cls, text: str) -> "Schedule":
        """Parses the output of `weir schedule show --format json`."""
        values = json.loads(text)
        ranks = [rank["actions"] for rank in values["ranks"]]
        schedule = cls(ranks, str(values["schedule"]))
        schedule._json = text
        return schedule

    @property
    def ranks(self) -> List[List[str]]:
        """The actions of each rank."""
        return [list(rank) for rank in self._ranks]

    @property
    def num_ranks(self) -> int:
        """How many ranks the pipeline has."""
        return len(self._ranks)

    @property
    def file_name(self) -> str:
        """The beginning of the name, without characters that files should not have."""
        return re.sub(r"[^\w.-]", "-", self.name)[:60] or "schedule"

    def _rows(self) -> str:
        return "".join(",".join(rank) + "\n" for rank in self._ranks)

    def _run(self, command: str, json_file: bool, *arguments: str) -> "tuple[str, str]":
        """Runs `weir schedule COMMAND` on this schedule."""
        from_json = json_file and self._json is not None
        text = self._json if from_json else self._rows()
        ending = "json" if from_json else "csv"
        assert text is not None
        with named_text(f"{self.file_name}.{ending}", text) as path:
            out, err = run_here(
                ["schedule", command, path, *arguments], negative=command == "lint"
            )
        return out.replace(path, self.name), err.replace(path, self.name)

    def to_json(self) -> str:
        """Returns the schedule with its weight versions. Raises InputError if it
        cannot run."""
        if self._json is None:
            self._json, _ = self._run("show", False, "--format", "json")
        return self._json

    def to_dict(self) -> Dict[str, Any]:
        """Returns the same as a dictionary."""
        values: Dict[str, Any] = json.loads(self.to_json())
        return values

    def lint(self, *runtimes: str) -> LintReport:
        """Finds deadlocks, missing passes and growing memory.

        Runtimes that must be able to run the schedule: "rendezvous", "pytorch",
        "megatron".
        """
        arguments = ["--format", "json"]
        if runtimes:
            arguments += ["--runtime", ",".join(runtimes)]
        out, err = self._run("lint", True, *arguments)
        if not out:
            raise InputError(messages_of(err)[0], 2)
        return LintReport(json.loads(out)["result"])

    def semantics(self) -> Dict[str, Any]:
        """Returns which weight versions every microbatch reads, and a verdict."""
        out, _ = self._run("semantics", True, "--format", "json")
        values: Dict[str, Any] = json.loads(out)["result"]
        return values

    def to_csv(
        self, *, lower: bool = False, merge_backward: bool = False, transfers_only: bool = False
    ) -> str:
        """Returns PyTorch's CSV; with `lower`, with transfers, weight gathering
        and gradient reduction."""
        arguments = arguments_of(
            {
                "lower": lower or None,
                "merge_backward": merge_backward or None,
                "transfers_only": transfers_only or None,
            }
        )
        return self._run("convert", True, *arguments)[0]

    def save(self, path: Path, **options: bool) -> None:
        """Writes PyTorch's CSV, or JSON if the path ends in .json."""
        json_file = os.fspath(path).endswith(".json")
        write_file(path, self.to_json() if json_file else self.to_csv(**options))

    def timeline(self) -> str:
        """Returns the timeline as text, with passes of equal length."""
        return self._run("show", True)[0]

    def draw(self, **flags: Flag) -> _figures.Figure:
        """Returns the timeline as a figure; flags are those of `weir draw`, such
        as `costs="f=1,b=2"`."""
        with named_text(f"{self.file_name}.json", self.to_json()) as path:
            figure = _figures.draw([path], **flags)
        return _figures.Figure(figure.replace(path, html.escape(self.name)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._ranks == other._ranks

    def __hash__(self) -> int:
        return hash(tuple(tuple(rank) for rank in self._ranks))

    def __repr__(self) -> str:
        return f"<weir.Schedule {self.name}: {counted(self.num_ranks, 'rank')}>"

    def _repr_svg_(self) -> str:
        return str(self.draw())


def schedules() -> List[Dict[str, Any]]:
    """Returns name, paper, constraints and options of every schedule."""
    out, _ = run_here(["schedule", "list", "--format", "json"])
    kinds: List[Dict[str, Any]] = json.loads(out)["result"]["schedules"]
    return kinds


def schedule(
    source: Union[Path, Sequence[Iterable[Action]], Callable[..., Iterable[Action]]],
    num_ranks: Optional[int] = None,
    num_microbatches: Optional[int] = None,
    **flags: Flag,
) -> Schedule:
    """Returns a schedule: a name of `schedules()`, a file, the orders of all
    ranks, or a function of (rank, num_ranks, num_microbatches)."""
    if isinstance(source, (str, os.PathLike)):
        sizes: Dict[str, Flag] = {"pp": num_ranks, "microbatches": num_microbatches}
        return Schedule.load(source, **{**sizes, **flags})
    if callable(source):
        return Schedule.from_function(source, cast(int, num_ranks), cast(int, num_microbatches))
    return Schedule(source)
