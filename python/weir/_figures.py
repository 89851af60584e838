# SPDX-License-Identifier: Apache-2.0
"""Figures as SVG, drawn by `weir draw`."""

from __future__ import annotations

import os
from typing import Sequence, Union

from weir._command import (
    Flag,
    arguments_of,
    named_text,
    run_worker,
    temporary_folder,
    write_file,
)
from weir.errors import InputError

Path = Union[str, "os.PathLike[str]"]


class Figure(str):
    """The text of an SVG figure, which notebooks display."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Path) -> None:
        """Writes the SVG file."""
        name = os.fspath(path)
        if not name.lower().endswith(".svg"):
            raise InputError(
                f"figure: path is {name!r}, expected a name ending in .svg; `weir draw -o` "
                "writes PDF and PNG",
                2,
            )
        write_file(path, self)


INSTEAD = {"output": "Figure.save(path)"}


def draw(arguments: Sequence[str], **flags: Flag) -> Figure:
    """Returns the figure of the input that the arguments name."""
    with temporary_folder() as folder:
        path = os.path.join(folder, "figure.svg")
        run_worker(
            ["draw", *arguments, "--output", path, "--quiet", *arguments_of(flags, INSTEAD)]
        )
        with open(path, encoding="utf-8") as file:
            return Figure(file.read())


def draw_file(name: str, contents: Union[str, bytes], **flags: Flag) -> Figure:
    """Returns the figure of a file with this name and contents."""
    with named_text(name, contents) as path:
        return draw([path], **flags)


def report_file(name: str, contents: Union[str, bytes], path: Path) -> None:
    """Writes the HTML page of stored results."""
    with named_text(name, contents) as stored:
        run_worker(["report", stored, "--output", os.fspath(path), "--force"])
