# SPDX-License-Identifier: Apache-2.0
"""The base of the dataclasses of scenarios."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any


class Message:
    """Refuses attributes that are no fields."""

    # Hides it from type checkers, which would then accept every attribute.
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self.__dataclass_fields__:
                close = difflib.get_close_matches(name, self.__dataclass_fields__, 1)
                suggestion = f"; did you mean {close[0]!r}?" if close else ""
                raise AttributeError(f"{type(self).__name__} has no field {name!r}{suggestion}")
            object.__setattr__(self, name, value)
