# SPDX-License-Identifier: Apache-2.0
"""Finds libclang and parses single sources with it."""

import os
import re

MISSING = ("error: the Python bindings of libclang are missing; install them: "
           "apt-get install python3-clang-14 (Debian 12) or python3-clang")


class MissingLibclang(Exception):
    pass


def load():
    """Returns the module clang.cindex, after its library has loaded."""
    if os.environ.get("WEIR_MUTATE_WITHOUT_LIBCLANG") == "1":
        raise MissingLibclang(MISSING)  # for the test of the message
    try:
        import clang.cindex as cindex
        cindex.Index.create()
        return cindex
    except (ImportError, OSError):
        raise MissingLibclang(MISSING) from None
    except Exception as error:  # LibclangError of any version
        raise MissingLibclang(f"{MISSING} ({error})") from None


def _resource_dir():
    """Returns the folder of clang's own headers, or None.

    The bindings do not find it, as they are used without the compiler.
    """
    best = None
    for root in sorted(os.listdir("/usr/lib")):
        if not re.fullmatch(r"llvm-\d+", root):
            continue
        base = f"/usr/lib/{root}/lib/clang"
        for version in sorted(os.listdir(base)) if os.path.isdir(base) else []:
            if os.path.exists(f"{base}/{version}/include/stddef.h"):
                best = f"{base}/{version}"
    return best


class Parser:
    def __init__(self, database):
        self._cindex = load()
        self._index = self._cindex.Index.create()
        self._database = database
        self._resource_dir = _resource_dir()

    def parse(self, path):
        """Returns the translation unit of a source.

        Raises ValueError if libclang finds an error: the tree would lack
        everything after it.
        """
        arguments = ["-w", *self._database.front_end_flags(path)]
        if self._resource_dir:
            arguments.append(f"-resource-dir={self._resource_dir}")
        unit = self._index.parse(os.path.join(self._database.root, path),
                                 args=arguments)
        severe = [d for d in unit.diagnostics
                  if d.severity >= self._cindex.Diagnostic.Error]
        if severe:
            raise ValueError(f"{path}: libclang: {severe[0]}")
        return unit
