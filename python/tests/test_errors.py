# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import typing
from typing import Callable

import pytest

import weir
from weir import _core
from weir.errors import error_of, messages_of, raise_for


@pytest.mark.parametrize("text, file, line, field, found, expected", [
    ("scenario: parallelism.tensor is 3, expected a divisor of the 64 heads",
     "scenario", None, "parallelism.tensor", "3", "a divisor of the 64 heads"),
    ("my.textproto:7: batch.global_batch_size is 0, expected a number above 0",
     "my.textproto", 7, "batch.global_batch_size", "0", "a number above 0"),
    ("my.textproto:7:12: nodes[0].nics[1].bytes_per_second is -1, expected x",
     "my.textproto", 7, "nodes[0].nics[1].bytes_per_second", "-1", "x"),
    ("command line: --pp is 0, expected a whole number from 1", "command line", None,
     "--pp", "0", "a whole number from 1"),
    ("weir simulate: unknown option --pq; did you mean --pp?", "weir simulate", None,
     "--pq", None, None),
    ("schedule is x, expected one of y, z; did you mean y?", None, None, "schedule", "x",
     "one of y, z"),
    ("s.csv:2:3: 'xF0' is not an action, expected <stage>", "s.csv", 2, None,
     "'xF0' is not an action", "<stage>"),
    ("scenario: is 'x', expected an instance of Scenario", "scenario", None, None, "'x'",
     "an instance of Scenario"),
    ("out of memory", None, None, None, None, None),
])
def test_parts(text: str, file: str, line: int, field: str, found: str,
               expected: str) -> None:
    (problem,) = weir.WeirError(text).problems
    assert problem.text == text
    assert (problem.file, problem.line, problem.field) == (file, line, field)
    assert (problem.found, problem.expected) == (found, expected)


@pytest.mark.parametrize("call", [
    weir.simulate, weir.compare, weir.estimate, weir.Scenario.load, weir.schedule,
    weir.model, weir.cluster, weir.profile, lambda name: weir.plan(name).result(),
])
@pytest.mark.parametrize("name", ["--help", "-h", ""])
def test_names_are_no_options(call: Callable[[str], object], name: str) -> None:
    with pytest.raises(weir.InputError, match="expected a preset or a file"):
        call(name)


def test_lines_are_problems() -> None:
    error = error_of(2, "a: x is 1, expected 2\n  because of y\nb: z is 3, expected 4")
    assert isinstance(error, weir.InputError) and len(error.problems) == 2
    assert error.problems[0].text.endswith("\n  because of y")
    assert (error.file, error.field, error.found) == ("a", "x", "1")
    assert error.exit_code == 2


def test_classes() -> None:
    assert isinstance(error_of(1, "m"), weir.NegativeResultError)
    assert isinstance(error_of(3, "m"), weir.MissingError)
    assert isinstance(error_of(70, "m"), weir.InternalError)
    assert "139" in str(error_of(139, ""))
    raise_for(0, "warning: x\n")
    raise_for(1, "", negative=True)
    with pytest.raises(KeyboardInterrupt):
        raise_for(130, "")
    with pytest.raises(weir.InputError, match="^a: b$"):
        raise_for(2, "warning: w\nerror: a: b\nwrote x\n")


def test_messages() -> None:
    text = "warning: w\nnote\nerror: e\n  detail\nerror: f\n"
    assert messages_of(text) == ("e\n  detail\nf", ["w"])


def test_the_stub_names_what_the_module_has() -> None:
    stub = pathlib.Path(weir.__file__).with_name("_core.pyi").read_text()
    named = set()
    for node in ast.parse(stub).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.add(node.target.id)
    hidden = {"__doc__", "__file__", "__loader__", "__name__", "__package__", "__spec__"}
    assert named == set(dir(_core)) - hidden
    members = {
        node.name for cls in ast.parse(stub).body
        if isinstance(cls, ast.ClassDef) and cls.name == "Estimate"
        for node in cls.body if isinstance(node, ast.FunctionDef)}
    assert members == {name for name in vars(_core.Estimate) if not name.startswith("_")}


def test_version() -> None:
    assert weir.__version__ == _core.__version__
    assert set(weir.__all__) <= set(dir(weir))


@pytest.mark.parametrize("name", [b"gpt2", 5, "\udc80"])
def test_names_are_text(name: typing.Any) -> None:
    for call in (weir.simulate, weir.estimate, weir.model, weir.Scenario.load):
        with pytest.raises(weir.InputError, match="the name is .*, expected"):
            call(name)


@pytest.mark.parametrize("value", [b"1f1b", "\udc80", object(), weir.Scenario()])
def test_wrong_flags_are_refused(value: typing.Any) -> None:
    for call in (weir.simulate, weir.estimate, weir.Scenario.load):
        with pytest.raises(weir.InputError, match="^flags: --schedule is .*, expected") as caught:
            call("llama-3-70b-64-h100", schedule=value)
        assert caught.value.file == "flags" and caught.value.field == "--schedule"


@pytest.mark.parametrize("call, flags", [
    (weir.simulate, {"method": "fast"}), (weir.simulate, {"out": "x.pb"}),
    (weir.simulate, {"trace": "x.json"}), (weir.simulate, {"report": "x.html"}),
    (weir.simulate, {"columns": "name"}), (weir.compare, {"out": "x.pb"}),
    (weir.compare, {"timeline": True}), (weir.plan, {"stream": True}),
    (weir.plan, {"graph": "x"}), (weir.sweep, {"out": "x"}), (weir.sweep, {"slurm": True}),
    (weir.draw, {"output": "x.svg"}), (weir.estimate, {"out": "x.pb"}),
    (weir.Scenario.load, {"timeline": True}),
    *((call, {name: value})
      for call in (weir.simulate, weir.compare, weir.plan, weir.estimate, weir.draw,
                   weir.Scenario.load, weir.model, weir.schedule)
      for name, value in (("help", True), ("format", "csv"), ("message_format", "json"))),
])
def test_flags_that_functions_cannot_honor(
        call: Callable[..., object], flags: "dict[str, typing.Any]") -> None:
    (name, value), = flags.items()
    with pytest.raises(weir.InputError) as caught:
        call("llama-3-70b-64-h100", **flags)
    assert caught.value.field == "--" + name.replace("_", "-")
    assert caught.value.found == repr(value) and caught.value.expected


def test_all_wrong_flags_are_reported() -> None:
    with pytest.raises(weir.InputError) as caught:
        weir.simulate("llama-3-70b-64-h100", help=True, pp=b"4", tp=2, format="csv")
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["--help", "--pp", "--format"]


def test_the_fast_method_is_an_estimate() -> None:
    with pytest.raises(weir.InputError, match=r"expected weir.estimate\(\)"):
        weir.simulate("llama-3-70b-64-h100", method="fast")


def test_failures_of_workers_are_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "__file__", "/nowhere/_core.so")
    for call in (weir.simulate, weir.compare):
        with pytest.raises(weir.InternalError, match="ImportError: /nowhere/_core.so"):
            call("llama-3-70b-64-h100")


def test_empty_flags_are_refused() -> None:
    for value in ("", [], "a\0b"):
        with pytest.raises(weir.WeirError, match="--schedule is .*, expected a value"):
            weir.simulate("llama-3-70b-64-h100", schedule=value)
