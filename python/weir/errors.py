# SPDX-License-Identifier: Apache-2.0
"""Exceptions. Each lists its problems with file, field, found and expected."""

from __future__ import annotations

import dataclasses
from typing import List, Optional, Type

from weir import _core


@dataclasses.dataclass(frozen=True)
class Problem:
    """One line of an error. Parts that the line does not have are None."""

    text: str
    file: Optional[str] = None
    line: Optional[int] = None
    field: Optional[str] = None
    found: Optional[str] = None
    expected: Optional[str] = None


class WeirError(Exception):
    """Base of all exceptions of weir."""

    def __init__(self, message: str, exit_code: int = 70):
        super().__init__(message)
        self.exit_code = exit_code  # that of the command line
        self.problems = [Problem(*parts) for parts in _core.split_problems(message)]

    def _first(self, part: str) -> Optional[str]:
        for problem in self.problems:
            value: Optional[str] = getattr(problem, part)
            if value is not None:
                return value
        return None

    @property
    def file(self) -> Optional[str]:
        """The file or flag that the first problem names."""
        return self._first("file")

    @property
    def field(self) -> Optional[str]:
        """The field that the first problem names."""
        return self._first("field")

    @property
    def found(self) -> Optional[str]:
        """The value that was found."""
        return self._first("found")

    @property
    def expected(self) -> Optional[str]:
        """What was expected instead."""
        return self._first("expected")


class InputError(WeirError):
    """The input is wrong; the message says how to correct it."""


class NegativeResultError(WeirError):
    """The input is valid, but there is no result: a deadlock, or no plan fits."""


class MissingError(WeirError):
    """Something is missing on this machine, such as a program or memory."""


class InternalError(WeirError):
    """A bug in weir."""


class ScenarioWarning(UserWarning):
    """A scenario may not describe all of the file from which it was read."""


_CLASSES = {1: NegativeResultError, 2: InputError, 3: MissingError}


def error_of(exit_code: int, message: str) -> WeirError:
    """Returns the exception for an exit code of the command line."""
    kind: Type[WeirError] = _CLASSES.get(exit_code, InternalError)
    return kind(message or f"weir ended with exit code {exit_code}", exit_code)


def messages_of(stderr: str) -> "tuple[str, List[str]]":
    """Returns the errors as one text, and the warnings, of standard error."""
    errors: List[str] = []
    warnings: List[str] = []
    last: Optional[List[str]] = None
    for line in stderr.splitlines():
        if line.startswith("error: "):
            last = errors
            errors.append(line[len("error: ") :])
        elif line.startswith("warning: "):
            last = warnings
            warnings.append(line[len("warning: ") :])
        elif line.startswith("  ") and last:
            last[-1] += "\n" + line
        else:
            last = None
    return "\n".join(errors), warnings


def raise_for(exit_code: int, stderr: str, negative: bool = False) -> None:
    """Raises the error of a command that failed.

    With `negative`, exit code 1 is a result.
    """
    if exit_code == 0 or (exit_code == 1 and negative):
        return
    if exit_code in (130, -2):
        raise KeyboardInterrupt
    message, _ = messages_of(stderr)
    raise error_of(exit_code, message or stderr.strip())


def replace_in(error: WeirError, old: str, new: str) -> WeirError:
    """Returns the error with another name of a file."""
    return error_of(error.exit_code, str(error).replace(old, new))


__all__ = [
    "InputError",
    "InternalError",
    "MissingError",
    "NegativeResultError",
    "Problem",
    "ScenarioWarning",
    "WeirError",
]
