# SPDX-License-Identifier: Apache-2.0
"""Simulations and fast estimates."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from weir import _core, _figures
from weir._command import (
    Flag,
    arguments_of,
    name_argument,
    named_text,
    read_bytes,
    run_worker,
    temporary_folder,
)
from weir._core import Estimate
from weir._scenario_methods import NOT_OF_SCENARIOS, scenario_of
from weir.errors import InputError, WeirError, error_of, messages_of, raise_for
from weir.messages import Scenario
from weir.results import Comparison, Result
from weir._schedules import Schedule

ScenarioLike = Union[None, str, "os.PathLike[str]", Scenario]


class Arguments(List[str]):
    """Arguments of a command, some of which name temporary files."""

    def __init__(self) -> None:
        super().__init__()
        self._names: Dict[str, str] = {}

    def add_file(self, path: str, name: str) -> None:
        """Notes whose contents a file has."""
        self._names[path] = name

    def shown(self, text: str) -> str:
        """Returns text of the command with the names instead of the files."""
        for path, name in self._names.items():
            text = text.replace(path, name)
        return text


def _with_files(stack: contextlib.ExitStack, arguments: Arguments, value: Any) -> Any:
    """Replaces schedules by files that hold them."""
    if isinstance(value, Schedule):
        if "," in tempfile.gettempdir():
            raise InputError(
                f"schedule: TMPDIR is {tempfile.gettempdir()!r}, expected a folder without "
                "a comma, which separates schedules",
                2,
            )
        file = named_text(f"{value.file_name}.json", value.to_json())
        path = stack.enter_context(file)
        arguments.add_file(path, value.name)
        return path
    if isinstance(value, (list, tuple)):
        return [_with_files(stack, arguments, item) for item in value]
    return value


@contextlib.contextmanager
def arguments_for(
    scenario: ScenarioLike, flags: Dict[str, Any], instead: Mapping[str, str]
) -> Iterator[Arguments]:
    """Yields the arguments that name a scenario and its flags, except those that
    `instead` names; see arguments_of."""
    with contextlib.ExitStack() as stack:
        arguments = Arguments()
        flags = {
            name: _with_files(stack, arguments, value) for name, value in flags.items()
        }
        if isinstance(scenario, Scenario):
            text = scenario.to_textproto()
            path = stack.enter_context(named_text("scenario.textproto", text))
            arguments.append(path)
            arguments.add_file(path, "scenario")
        elif scenario is not None:
            arguments.append(name_argument(scenario))
        arguments.extend(arguments_of(flags, instead))
        yield arguments


# Maps flags of the output to what Python has instead.
_OF_RESULTS = {
    "columns": "to_dict() or to_pandas() of the result",
    "ranks": "an argument of draw() or trace() of the result",
    "replica": "an argument of trace() of the result",
    "report": "report() of the result",
    "timeline": "draw() of the result",
    "trace": "trace() of the result",
}


def simulate(scenario: ScenarioLike = None, *, timeline: bool = True, **flags: Any) -> Result:
    """Simulates every GPU and every microbatch of a step, in a worker process.

    `scenario` is a weir.Scenario, a preset or a file. Flags are those of
    `weir simulate`, with underscores; `schedule` may also be a weir.Schedule.
    Without `timeline`, the result cannot be drawn, but needs less memory.
    """
    instead = {
        **_OF_RESULTS,
        "method": "weir.estimate() for the fast method",
        "out": "save() of the result",
    }
    with temporary_folder() as folder, arguments_for(scenario, flags, instead) as arguments:
        command = ["simulate", *arguments, "--format", "json", "--quiet"]
        path = os.path.join(folder, "result.pb")
        if timeline:
            command += ["--out", path]
        out, err = run_worker(command, negative=True)
        if not out:
            raise_for(1, arguments.shown(err))
        document = json.loads(arguments.shown(out))
        stored = read_bytes(path) if timeline else None
    return Result(document["result"], stored, document["warnings"])


def compare(
    scenario: ScenarioLike = None,
    schedules: Union[None, str, Schedule, Sequence[Union[str, Schedule]]] = None,
    **flags: Any,
) -> Comparison:
    """Simulates several schedules of one scenario, in a worker process.

    `schedules` may be a text with commas, as on the command line; without it,
    the scenario's own schedule is simulated. Flags are those of `weir compare`,
    with underscores. Raises an exception if no schedule can be simulated; the
    warnings name those that cannot.
    """
    if isinstance(schedules, (str, Schedule)):
        schedules = [schedules]
    if schedules is not None:
        flags = {**flags, "schedule": list(schedules)}
        if not flags["schedule"]:
            raise InputError("compare: schedules is empty, expected at least one", 2)
    instead = {**_OF_RESULTS, "out": "save() of the result of weir.simulate()"}
    with temporary_folder() as folder, arguments_for(scenario, flags, instead) as arguments:
        path = os.path.join(folder, "results.pb")
        command = ["compare", *arguments, "--format", "json", "--out", path, "--quiet"]
        out, err = run_worker(command, negative=True, partial=True)
        err = arguments.shown(err)
        if not out:
            raise_for(1, err)
        document = json.loads(arguments.shown(out))
        results = [Result(values) for values in document["results"]]
        warnings = [*document["warnings"], *messages_of(err)[0].splitlines()]
        return Comparison(results, warnings, read_bytes(path))


def _estimate_with(scenario: ScenarioLike, flags: Dict[str, Any]) -> Estimate:
    with arguments_for(scenario, flags, NOT_OF_SCENARIOS) as arguments:
        try:
            return estimate(scenario_of(arguments))
        except WeirError as error:
            raise error_of(error.exit_code, arguments.shown(str(error))) from None


def estimate(scenario: ScenarioLike = None, **flags: Any) -> Estimate:
    """Estimates time and memory of a step in this process.

    The values equal those of `simulate` to 1e-9. Scenarios that share model and
    cluster are estimated faster: pass a weir.Scenario and no flags.
    """
    if not isinstance(scenario, Scenario) or flags:
        return _estimate_with(scenario, flags)
    try:
        return _core.estimate(scenario)
    except _core.StatusError as error:
        raise error_of(*error.args) from None


def estimates(scenarios: Iterable[Scenario]) -> List[Estimate]:
    """Estimates many scenarios, with the GIL released in between."""
    try:
        return _core.estimates(scenarios)
    except _core.StatusError as error:
        raise error_of(*error.args) from None


def draw(
    scenario: Union[ScenarioLike, Schedule] = None, kind: Optional[str] = None, **flags: Any
) -> _figures.Figure:
    """Draws a figure of a schedule, a scenario or a stored file (`weir draw`)."""
    flags = {"kind": kind, **flags}
    if isinstance(scenario, Schedule):
        return scenario.draw(**flags)
    with arguments_for(scenario, flags, _figures.INSTEAD) as arguments:
        return _figures.draw(arguments)
