# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import weir

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "python" / "examples"


def run(name: str, folder: typing.Any) -> str:
    return subprocess.run([sys.executable, str(EXAMPLES / name)], cwd=folder, check=True,
                          capture_output=True, text=True).stdout


def test_own_schedule(tmp_path: typing.Any) -> None:
    out = run("own_schedule.py", tmp_path)
    assert "0 errors" in out and "33 s" in out
    rows = (tmp_path / "one-f-one-b.csv").read_text().splitlines()
    assert rows == weir.schedule("1f1b", 4, 8).to_csv().splitlines()


def test_plan_llama(tmp_path: typing.Any) -> None:
    out = run("plan_llama.py", tmp_path)
    assert "<weir.PlanReport of" in out
    assert "<svg" in (tmp_path / "pareto.svg").read_text()


def test_examples_are_short() -> None:
    """Ten lines of code suffice."""
    for name in ("own_schedule.py", "plan_llama.py"):
        text = (EXAMPLES / name).read_text()
        text = re.sub(r'"""[^"]*"""', "", text)
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert len(lines) <= 10, lines


def test_documents_show_the_examples() -> None:
    manual = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", manual, flags=re.DOTALL)
    for name in ("own_schedule.py", "plan_llama.py"):
        text = (EXAMPLES / name).read_text()
        assert text[text.index("import weir"):] in blocks, name


def test_first_block_of_the_manual_runs(tmp_path: typing.Any) -> None:
    manual = (ROOT / "docs" / "python.md").read_text()
    first = re.findall(r"```python\n(.*?)```", manual, flags=re.DOTALL)[0]
    out = subprocess.run([sys.executable, "-c", first], cwd=tmp_path, check=True,
                         capture_output=True, text=True).stdout.split()
    assert float(out[0]) > 1 and out[2] == "True"


def test_benchmark() -> None:
    """The benchmark of fast estimates separates the time of C++ from Python's."""
    sys.path.insert(0, str(ROOT / "python" / "benchmarks"))
    import fast_estimates  # type: ignore[import]

    work = fast_estimates.given_costs(20)
    for estimate in (fast_estimates.one_by_one, weir.estimates):
        values = fast_estimates.measure(work, 2, estimate)
        total = values["cpp_microseconds"] + values["python_microseconds"]
        assert 0 < values["cpp_microseconds"] < total
        assert total * values["estimates_per_second"] == pytest.approx(1e6)
