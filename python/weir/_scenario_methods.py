# SPDX-License-Identifier: Apache-2.0
"""What weir.Scenario can do besides holding fields."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, List, Mapping, Union, cast

from weir import _core
from weir._command import Flag, arguments_of, name_argument, named_text, write_file
from weir._message import Message
from weir.errors import InputError, ScenarioWarning, error_of

if TYPE_CHECKING:
    from weir.messages import Scenario

Path = Union[str, "os.PathLike[str]"]


# Refuses flags of the output of `weir simulate`, which do not describe a scenario.
NOT_OF_SCENARIOS = dict.fromkeys(
    (
        "columns",
        "emit",
        "emit_to",
        "method",
        "out",
        "ranks",
        "replica",
        "report",
        "timeline",
        "trace",
    ),
    "flags that describe a scenario; weir.simulate() returns more",
)


def _classes() -> Any:
    from weir import messages

    return messages


def _warn(message: str) -> None:
    """Warns of the line that called the package."""
    level = 1
    while sys._getframe(level).f_globals.get("__package__") == __package__:
        level += 1
    warnings.warn(message, ScenarioWarning, stacklevel=level + 1)


def scenario_of(arguments: List[str]) -> "Scenario":
    """Returns the scenario that these arguments of `weir simulate` describe.

    Warns of settings of imported files that it ignores.
    """
    try:
        scenario, notes = _core.scenario_of_arguments(arguments, _classes())
    except _core.StatusError as error:
        raise error_of(*error.args) from None
    for note in notes:
        _warn(note)
    return cast("Scenario", scenario)


def _imported(flag: str, file: Path, cluster: Path, flags: Mapping[str, Flag]) -> "Scenario":
    """Returns the run of a file of a framework, which must describe a model."""
    scenario = ScenarioMethods.from_flags(**{flag: file}, cluster=cluster, **flags)
    if scenario.model is None and scenario.transformer is None:
        raise InputError(
            f"{os.fspath(file)}: model is missing, expected settings of a model in the file, "
            "or the flag model",
            2,
        )
    return scenario


class ScenarioMethods(Message):
    """Methods of weir.Scenario."""

    @staticmethod
    def load(name_or_path: Path, **flags: Flag) -> "Scenario":
        """Loads a preset (`weir.scenarios()`) or a textproto file.

        Flags are those of `weir simulate`, with underscores: `pp=8`,
        `schedule="zb-h1"`. They replace fields of the file.
        """
        return scenario_of([name_argument(name_or_path), *arguments_of(flags, NOT_OF_SCENARIOS)])

    @staticmethod
    def from_flags(**flags: Flag) -> "Scenario":
        """Returns the scenario of flags of `weir simulate`, without a file."""
        return scenario_of(arguments_of(flags, NOT_OF_SCENARIOS))

    @staticmethod
    def from_huggingface(config: Path, cluster: Path, **flags: Flag) -> "Scenario":
        """Returns a run of a model of Hugging Face.

        `config` is the path of its config.json, or the name of a preset. Raises
        InputError if weir cannot read it.
        """
        from weir.catalog import model

        model(config)
        return ScenarioMethods.from_flags(model=config, cluster=cluster, **flags)

    @staticmethod
    def from_megatron(arguments: Path, cluster: Path, **flags: Flag) -> "Scenario":
        """Returns the run that a file of Megatron-LM's arguments starts."""
        return _imported("megatron_args", arguments, cluster, flags)

    @staticmethod
    def from_torchtitan(job: Path, cluster: Path, **flags: Flag) -> "Scenario":
        """Returns the run of a job configuration of torchtitan (TOML)."""
        return _imported("torchtitan", job, cluster, flags)

    @staticmethod
    def from_textproto(text: str, label: str = "scenario") -> "Scenario":
        """Parses the text format of scenario files."""
        try:
            return cast("Scenario", _core.parse_scenario(label, text, _classes()))
        except _core.StatusError as error:
            raise error_of(*error.args) from None

    def to_textproto(self) -> str:
        """Returns the contents of a scenario file."""
        try:
            return _core.textproto(self)
        except _core.StatusError as error:
            raise error_of(*error.args) from None

    def save(self, path: Path) -> None:
        """Writes a scenario file, for the command line."""
        write_file(path, self.to_textproto())

    def with_flags(self, **flags: Flag) -> "Scenario":
        """Returns a copy with fields replaced by flags of `weir simulate`."""
        with named_text("scenario.textproto", self.to_textproto()) as path:
            return scenario_of([path, *arguments_of(flags, NOT_OF_SCENARIOS)])

    def resolved(self) -> "Scenario":
        """Returns a copy with all defaults filled in, after all checks."""
        try:
            return cast("Scenario", _core.resolve(self, _classes()))
        except _core.StatusError as error:
            raise error_of(*error.args) from None
