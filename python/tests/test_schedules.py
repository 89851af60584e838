# SPDX-License-Identifier: Apache-2.0
import functools
import typing

import pytest

import weir


def one_f_one_b(rank: int, ranks: int, microbatches: int) -> typing.Iterator[str]:
    warmup = min(ranks - rank - 1, microbatches)
    yield from (f"{rank}F{m}" for m in range(warmup))
    for m in range(microbatches):
        if warmup + m < microbatches:
            yield f"{rank}F{warmup + m}"
        yield f"{rank}B{m}"


def test_function_equals_the_registered_schedule() -> None:
    own = weir.schedule(one_f_one_b, 4, 8)
    assert own.name == "one-f-one-b"
    assert own.ranks == weir.schedule("1f1b", 4, 8).ranks


def test_other_callables() -> None:
    class OneFOneB:
        def __call__(self, rank: int, ranks: int, microbatches: int) -> typing.Iterator[str]:
            return one_f_one_b(rank, ranks, microbatches)

    assert weir.schedule(functools.partial(one_f_one_b), 2, 3).name == "one-f-one-b"
    assert weir.schedule(OneFOneB(), 2, 3).name == "OneFOneB"


@pytest.mark.parametrize("ranks, microbatches, field", [
    (-1, 3, "num_ranks"), (None, 3, "num_ranks"), (2.0, 3, "num_ranks"),
    (2, 0, "num_microbatches"), (2, None, "num_microbatches")])
def test_wrong_sizes(ranks: typing.Any, microbatches: typing.Any, field: str) -> None:
    with pytest.raises(weir.InputError, match="expected a whole number from 1") as caught:
        weir.schedule(one_f_one_b, ranks, microbatches)
    assert caught.value.field == field


def test_names_may_be_long(given: weir.Scenario) -> None:
    name = "\N{GREEK SMALL LETTER PI}" * 300
    own = weir.Schedule(weir.schedule(one_f_one_b, 4, 8).ranks, name)
    assert own.lint() and weir.simulate(given, schedule=own).schedule == own.name


def test_schedules_without_a_file() -> None:
    """Scenarios hold names and files of schedules only."""
    own = weir.schedule(one_f_one_b, 8, 64)
    with pytest.raises(weir.InputError, match=r"--schedule is <weir.Schedule .*save\(\)"):
        weir.Scenario.load("llama-3-70b-64-h100", schedule=own)
    expected = weir.estimate("llama-3-70b-64-h100", schedule="1f1b")
    estimate = weir.estimate("llama-3-70b-64-h100", schedule=own)
    assert estimate.step_seconds == pytest.approx(expected.step_seconds, rel=1e-9)
    assert "one-f-one-b" in weir.draw(own)


def test_temporary_folders_with_a_comma(
        given: weir.Scenario, tmp_path: typing.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a,b").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a,b"))
    with pytest.raises(weir.InputError, match="TMPDIR is .*, expected a folder without a comma"):
        weir.simulate(given, schedule=weir.schedule(one_f_one_b, 4, 8))
    assert weir.simulate(given).step_seconds == pytest.approx(33)


def test_lint_finds_a_deadlock() -> None:
    good = weir.schedule(one_f_one_b, 2, 2)
    assert good.lint()
    bad = weir.Schedule([["0F0", "0B0"], ["1B0", "1F0"]])
    report = bad.lint()
    assert not report and report.num_errors >= 1
    assert report[0].severity == "error"
    assert not weir.Schedule([["0F0", "0B0"], ["1F0"]]).lint()


def test_tuples_are_actions() -> None:
    schedule = weir.schedule([[(0, "F", 0), (0, "B", 0)]])
    assert schedule.ranks == [["0F0", "0B0"]]


def test_semantics() -> None:
    values = weir.schedule("pipedream-2bw", 4, 4).semantics()
    assert "delay 1" in values["verdict"]


def test_convert(tmp_path: typing.Any) -> None:
    schedule = weir.schedule(one_f_one_b, 2, 3)
    assert schedule.to_csv().splitlines()[0] == "0F0,0F1,0B0,0F2,0B1,0B2"
    assert "SEND_F" in schedule.to_csv(lower=True)
    schedule.save(tmp_path / "own.csv")
    assert weir.schedule(tmp_path / "own.csv").ranks == schedule.ranks
    schedule.save(tmp_path / "own.json")
    assert weir.schedule(tmp_path / "own.json").ranks == schedule.ranks


def test_draw() -> None:
    schedule = weir.schedule(one_f_one_b, 2, 3)
    assert "<svg" in schedule._repr_svg_()
    assert "2 ranks" in schedule.timeline()


def test_figures_are_svg(tmp_path: typing.Any) -> None:
    figure = weir.schedule("1f1b", 2, 3).draw()
    figure.save(tmp_path / "a.svg")
    with pytest.raises(weir.InputError, match=r"a.pdf', expected a name ending in .svg"):
        figure.save(tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()


def test_outputs_have_the_name_of_the_schedule() -> None:
    """And not the path of the file that commands read."""
    schedule = weir.schedule("1f1b", 2, 3)
    assert schedule.timeline().startswith("1f1b: 2 ranks")
    assert schedule.semantics()["schedule"] == "1f1b"
    assert "<title>1f1b: 2 ranks" in schedule.draw()


def test_what_functions_must_return() -> None:
    for actions, message in [
        (None, r"ranks\[0\] is None, expected a sequence of actions"),
        ("0F0", r"ranks\[0\] is '0F0', expected a sequence of actions"),
        ([5], r"ranks\[0\] has 5, expected actions as text"),
        ([(0, "F")], r"ranks\[0\] has \(0, 'F'\), expected actions as text"),
    ]:
        with pytest.raises(weir.InputError, match=message):
            weir.schedule(lambda rank, ranks, microbatches: actions, 2, 3)


def test_simulate_own_schedule(given: weir.Scenario) -> None:
    own = weir.schedule(one_f_one_b, 4, 8)
    assert weir.simulate(given, schedule=own).step_seconds == pytest.approx(33)
    assert weir.compare(given, [own, "gpipe"])[0].step_seconds == pytest.approx(33)


def test_errors() -> None:
    with pytest.raises(weir.WeirError, match="did you mean|1f1b"):
        weir.schedule("1f1bb")
    with pytest.raises(weir.InputError, match="num_ranks"):
        weir.schedule(one_f_one_b)
    with pytest.raises(weir.WeirError) as caught:
        weir.Schedule([["0X0"]]).semantics()
    assert "0X0" in str(caught.value)


def test_list() -> None:
    kinds = {kind["name"]: kind for kind in weir.schedules()}
    assert len(kinds) > 30
    assert "paper" in kinds["zb-h1"]
