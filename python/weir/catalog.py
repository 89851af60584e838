# SPDX-License-Identifier: Apache-2.0
"""Presets: models, clusters, device profiles and scenarios."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Union

from weir._command import Flag, arguments_of, name_argument, run_here

Path = Union[str, "os.PathLike[str]"]


def _names(kind: str) -> List[str]:
    return run_here([kind, "list"])[0].split()


def _show(kind: str, name: Path, flags: Dict[str, Flag]) -> Dict[str, Any]:
    arguments = [kind, "show", name_argument(name), "--format", "json"]
    out, _ = run_here([*arguments, *arguments_of(flags)])
    values: Dict[str, Any] = json.loads(out)
    return values


def models() -> List[str]:
    """Returns the names of the models."""
    return _names("model")


def model(name_or_path: Path, **flags: Flag) -> Dict[str, Any]:
    """Returns parameters, FLOP and layers of a preset or file; flags are those of
    `weir model show`."""
    return _show("model", name_or_path, flags)


def clusters() -> List[str]:
    """Returns the names of the clusters."""
    return _names("cluster")


def cluster(name_or_path: Path, **flags: Flag) -> Dict[str, Any]:
    """Returns nodes and network of a preset or file."""
    return _show("cluster", name_or_path, flags)


def profiles() -> List[str]:
    """Returns the names of the device profiles."""
    return _names("profile")


def profile(name_or_path: Path) -> Dict[str, Any]:
    """Returns the parameters of a device profile, with unit and source."""
    values: Dict[str, Any] = _show("profile", name_or_path, {})["result"]
    return values


def scenarios() -> List[str]:
    """Returns the names of the scenarios."""
    return _names("scenario")
