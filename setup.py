# SPDX-License-Identifier: Apache-2.0
"""Builds the extension module of the Python package with CMake and Ninja.

WEIR_CMAKE_BUILD names a folder that CMake has configured already, and whose
objects are used instead of compiling everything again.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.egg_info import egg_info

ROOT = pathlib.Path(__file__).resolve().parent


def version() -> str:
    """Returns the version of CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"^project\(weir VERSION ([0-9.]+)", text, re.MULTILINE)
    if found is None:
        sys.exit("CMakeLists.txt: has no version, expected project(weir VERSION ...)")
    return found[1]


class CMakeBuild(build_ext):
    """Compiles with CMake; setuptools only copies the module."""

    def build_extension(self, ext: Extension) -> None:
        given = os.environ.get("WEIR_CMAKE_BUILD")
        folder = pathlib.Path(given or ROOT / "build" / "wheel").resolve()
        if given is None:
            subprocess.run(
                [
                    "cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                    "-DWEIR_PYTHON=ON", "-DWEIR_CUDA=OFF",
                    f"-DPython3_EXECUTABLE={sys.executable}",
                ],
                check=True,
            )
        command = ["cmake", "--build", str(folder), "--target", "weir_python"]
        if self.parallel:
            command += ["--parallel", str(self.parallel)]
        subprocess.run(command, check=True)
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        (built,) = (folder / "python" / "weir").glob("_core.*.so")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)
        # Names of functions make up a third of the file.
        subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


class EggInfo(egg_info):
    """Keeps weir.egg-info out of the source tree."""

    def initialize_options(self) -> None:
        super().initialize_options()
        base = ROOT / "build" / "egg"
        base.mkdir(parents=True, exist_ok=True)
        self.egg_base = str(base)


setup(
    version=version(),
    ext_modules=[Extension("weir._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "egg_info": EggInfo},
)
