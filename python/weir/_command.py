# SPDX-License-Identifier: Apache-2.0
"""Runs commands of weir: in this process, or in a worker."""

from __future__ import annotations

import concurrent.futures
import contextlib
import numbers
import os
import signal
import subprocess
import sys
import tempfile
import threading
from types import MappingProxyType
from typing import (
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from weir import _core
from weir.errors import InputError, WeirError, error_of, raise_for, replace_in

Flag = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Any], Mapping[str, Any]]


# Maps flags that no function has to what Python has instead.
_OUTPUT_FLAGS = {
    "help": "help() of the function",
    "version": "weir.__version__",
    "color": "no flag, since messages have no colors",
    "format": "to_dict() or to_pandas() of the result",
    "message_format": "weir.WeirError.problems",
    "wide": "to_dict() or to_pandas() of the result",
}


def text_of(name: str, value: Any) -> str:
    """Returns the value of a flag or of an axis as on the command line."""
    # Converts arrays and scalars of NumPy and columns of pandas.
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={text_of(name, item)}" for key, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return ",".join(text_of(name, item) for item in value)
    if not isinstance(value, (str, numbers.Number)):
        raise InputError(
            f"flags: {name} is {value!r}, expected text, a number, a path or several of "
            "them; schedules have save(), which writes a file",
            2,
        )
    return str(value)


def checked_text(what: str, text: str, expected: str) -> str:
    """Returns the text if a command line can have it."""
    if not text or "\0" in text:
        raise InputError(f"{what} is {text!r}, expected {expected}", 2)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} is {text!r}, expected text in UTF-8", 2) from None
    return text


def arguments_of(
    flags: Mapping[str, Flag], instead: Mapping[str, str] = MappingProxyType({})
) -> List[str]:
    """Returns the command line of keyword arguments.

    `pp=8` is `--pp 8`, `sequence_parallel=True` is `--sequence-parallel`,
    `schedule=["1f1b", "zb-h1"]` is `--schedule 1f1b,zb-h1`,
    `set={"runtime.x": 1}` is `--set runtime.x=1`, and None is not given.
    Refuses the flags that `instead` names; its values say what to use.
    """
    refused = {**_OUTPUT_FLAGS, **instead}
    arguments, problems = [], []
    for name, value in flags.items():
        if value is None:
            continue
        name = name.rstrip("_").replace("-", "_")
        flag = "--" + name.replace("_", "-")
        if name in refused:
            problems.append(f"flags: {flag} is {value!r}, expected {refused[name]}")
        elif value is True:
            arguments.append(flag)
        else:
            try:
                text = checked_text(f"flags: {flag}", text_of(flag, value), "a value")
                arguments.append(f"{flag}={text}")
            except InputError as error:
                problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems), 2)
    return arguments


_EXPECTED_NAME = "a preset or a file; options are keyword arguments"


def name_argument(name: "Union[str, os.PathLike[str]]") -> str:
    """Returns the name of a preset or file as an argument.

    Raises an error for what the command line would read as an option.
    """
    if not isinstance(name, (str, os.PathLike)) or str(name).startswith("-"):
        raise InputError(f"the name is {name!r}, expected {_EXPECTED_NAME}", 2)
    return checked_text("the name", os.fspath(name), _EXPECTED_NAME)


def run_here(arguments: Sequence[str], negative: bool = False) -> "tuple[str, str]":
    """Runs a short command in this process; returns what it prints."""
    code, out, err = _core.run_here(list(arguments))
    raise_for(code, err, negative)
    return out, err


# Linux ends a worker when the thread that started it ends (PR_SET_PDEATHSIG). A
# thread that lives as long as this process starts the workers of all threads
# but the main one.
_starter: Optional[concurrent.futures.ThreadPoolExecutor] = None
_starter_lock = threading.Lock()


def _forget_starter() -> None:
    """Forked children have none of the threads."""
    global _starter, _starter_lock
    _starter, _starter_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_starter)


def _start(start: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    global _starter
    if threading.current_thread() is threading.main_thread():
        return start()
    with _starter_lock:
        if _starter is None:
            _starter = concurrent.futures.ThreadPoolExecutor(1, "weir")
        future = _starter.submit(start)
    return future.result()


class Worker:
    """A command in a process of its own, which ends with this process."""

    def __init__(self, arguments: Sequence[str]):
        script = os.path.join(os.path.dirname(__file__), "_worker.py")
        command = [sys.executable, "-I", "-S", script, str(os.getpid())]
        command += [_core.__file__, *arguments]
        self._err = tempfile.TemporaryFile()
        # Its own group: an interrupt of the terminal reaches it only through
        # this process, which knows what to do about it.
        self._process = _start(
            lambda: subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._err,
                start_new_session=True,
            )
        )

    def lines(self) -> Iterator[str]:
        """Yields lines of standard output as they are printed."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.decode()

    def read(self) -> str:
        """Returns standard output. On Ctrl-C, ends the worker and raises."""
        assert self._process.stdout is not None
        try:
            return self._process.stdout.read().decode()
        except BaseException:
            self.kill()
            self.close()
            raise

    def interrupt(self) -> None:
        """Asks for the best result so far."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends the worker and what it started."""
        # Commands note the first signal and end on their own if they can.
        for number, seconds in ((signal.SIGTERM, 1.0), (signal.SIGKILL, None)):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=seconds)

    def close(self) -> None:
        """Closes the files. No other thread may be reading."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._err.close()

    def finish(self) -> "tuple[int, str]":
        """Waits for the end; returns the exit code and standard error."""
        code = self._process.wait()
        self._err.seek(0)
        err = self._err.read().decode(errors="replace")
        self.close()
        if code < 0 and code != -signal.SIGINT:
            name = signal.Signals(-code).name
            raise error_of(70, f"a worker process of weir was ended by {name}\n{err}")
        return code, err


def run_worker(
    arguments: Sequence[str], negative: bool = False, partial: bool = False
) -> "tuple[str, str]":
    """Runs a command in a worker; returns what it prints.

    With `negative`, exit code 1 is no error; with `partial`, none is with which
    the command has printed a result.
    """
    worker = Worker(arguments)
    out = worker.read()
    code, err = worker.finish()
    raise_for(0 if partial and out and code != 130 else code, err, negative)
    return out, err


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Yields a folder for files that commands exchange."""
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        yield folder


@contextlib.contextmanager
def _shown_as(path: str, name: str) -> Iterator[None]:
    try:
        yield
    except WeirError as error:
        raise replace_in(error, path, name) from None


@contextlib.contextmanager
def named_text(name: str, text: Union[str, bytes]) -> Iterator[str]:
    """Yields the path of a file with this name and text.

    Errors show the name without its ending instead of the path.
    """
    with temporary_folder() as folder:
        path = os.path.join(folder, name)
        write_file(path, text)
        with _shown_as(path, name.partition(".")[0]):
            yield path


@contextlib.contextmanager
def named_folder(name: str) -> Iterator[str]:
    """Yields the path of a new folder with this name, which errors show instead."""
    with temporary_folder() as folder:
        path = os.path.join(folder, name)
        os.mkdir(path)
        with _shown_as(path, name):
            yield path


def read_bytes(path: str) -> bytes:
    """Returns the contents of a file."""
    with open(path, "rb") as file:
        return file.read()


def write_file(path: "Union[str, os.PathLike[str]]", contents: Union[str, bytes]) -> None:
    """Writes a file, as commands do: makes its folder and replaces an existing file."""
    name = os.fspath(path)
    try:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as file:
            file.write(contents.encode() if isinstance(contents, str) else contents)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}", 2) from None


__all__ = [
    "Flag",
    "Worker",
    "arguments_of",
    "checked_text",
    "name_argument",
    "named_folder",
    "named_text",
    "read_bytes",
    "run_here",
    "run_worker",
    "temporary_folder",
    "text_of",
    "write_file",
]
