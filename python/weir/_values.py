# SPDX-License-Identifier: Apache-2.0
"""Values of a JSON document as attributes."""

from __future__ import annotations

import copy
from typing import Any, Dict, List


def counted(number: int, noun: str) -> str:
    """Returns "1 point" or "2 points"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Values:
    """What `Result` and `Plan` share."""

    _NOUN = "a document"

    def __init__(self, values: Dict[str, Any]):
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(sorted(self._values))
            raise AttributeError(f"{self._NOUN} has no {name!r}; it has {known}") from None

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._values})

    @property
    def step_seconds(self) -> float:
        """Time of a step (a batch)."""
        return float(self._values["batch_seconds"])

    @property
    def peak_memory_bytes(self) -> float:
        """Peak of the fullest GPU."""
        return float(self._values["peak_memory_bytes"])

    def to_dict(self) -> Dict[str, Any]:
        """Returns all values as `--format json` prints them."""
        return copy.deepcopy(self._values)
