# SPDX-License-Identifier: Apache-2.0
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import typing

import pytest

import weir


def test_closed_form_of_1f1b(given: weir.Scenario) -> None:
    # (microbatches + ranks - 1) x (forward + backward)
    expected = (8 + 4 - 1) * 3.0
    assert weir.estimate(given).step_seconds == pytest.approx(expected, rel=1e-9)
    assert weir.simulate(given).step_seconds == pytest.approx(expected, rel=1e-9)


def test_estimate_equals_simulation(llama: weir.Scenario) -> None:
    result = weir.simulate(llama, timeline=False)
    estimate = weir.estimate(llama)
    assert estimate.step_seconds == pytest.approx(result.step_seconds, rel=1e-9)
    assert estimate.peak_memory_bytes == pytest.approx(result.peak_memory_bytes, rel=1e-9)
    assert estimate.tokens_per_second == pytest.approx(result.tokens_per_second, rel=1e-9)
    assert estimate.fits_memory == result.fits_memory
    assert len(estimate.peak_memory_bytes_by_rank) == 8


def test_estimates_are_values(llama: weir.Scenario) -> None:
    estimate = weir.estimate(llama)
    assert repr(estimate).startswith("<weir.Estimate 18.35 s, 70.1")
    values = estimate.to_dict()
    assert values["step_seconds"] == estimate.step_seconds
    assert len(values["peak_memory_bytes_by_rank"]) == 8
    for copied in (copy.deepcopy(estimate), pickle.loads(pickle.dumps(estimate))):
        assert copied.to_dict() == values
        assert copied == estimate
    assert estimate != weir.estimate(llama, gbs=64) and estimate != values
    assert "<td>18.35</td>" in estimate._repr_html_()
    assert type(estimate).peak_memory_bytes.__doc__
    pandas = pytest.importorskip("pandas")
    assert isinstance(estimate.to_pandas(), pandas.DataFrame)
    assert estimate.to_pandas().step_seconds[0] == estimate.step_seconds


def test_estimates_do_not_depend_on_earlier_ones(llama: weir.Scenario) -> None:
    """A scenario that shares files with an earlier one is estimated as alone."""
    changes: "list[dict[str, typing.Any]]" = [
        {}, {"schedule": "zb-h1"}, {"pp": 4}, {"gbs": 64}, {"recompute": "full"},
        {"dp": 1, "gpus": 32}, {"schedule": "interleaved-1f1b:v=2"}, {"mbs": 2},
        {"tp": 8}, {"seq": 4096}]
    scenarios = [llama.with_flags(**change) for change in changes]
    together = weir.estimates(scenarios)
    code = ("import sys, weir; s = weir.Scenario.from_textproto(sys.stdin.read());"
            "print(repr(weir.estimate(s).step_seconds))")
    for scenario, estimate in list(zip(scenarios, together))[1::3]:
        alone = subprocess.run([sys.executable, "-c", code], input=scenario.to_textproto(),
                               capture_output=True, text=True, check=True)
        assert float(alone.stdout) == pytest.approx(estimate.step_seconds, rel=1e-9)
    for scenario, estimate in zip(scenarios, together):
        assert weir.estimate(scenario).step_seconds == estimate.step_seconds


def test_data_parallel_size_follows_from_the_gpus() -> None:
    scenario = weir.Scenario(
        model="gpt2", cluster="dgx-h100", num_nodes=2,
        parallelism=weir.Parallelism(pipeline=4), batch=weir.Batch(global_batch_size=64),
        schedule="1f1b")
    first = weir.estimate(scenario)
    assert first.num_gpus == 16
    scenario.parallelism = weir.Parallelism(pipeline=2)
    assert weir.estimate(scenario).num_gpus == 16
    scenario.parallelism = weir.Parallelism(pipeline=4)
    assert weir.estimate(scenario).step_seconds == first.step_seconds


def test_result_views(given: weir.Scenario, tmp_path: typing.Any) -> None:
    result = weir.simulate(given)
    assert result.schedule == "1f1b"
    assert repr(result) == "<weir.Result given 1f1b: 33 s>"
    given.name = None
    assert repr(weir.simulate(given, timeline=False)) == "<weir.Result 1f1b: 33 s>"
    assert result.to_dict()["batch_seconds"] == result.step_seconds
    assert result.pipeline_parallel == 4 and "pipeline_parallel" in dir(result)
    with pytest.raises(AttributeError, match="no 'speed'"):
        result.speed
    assert "<svg" in result._repr_html_() and "1f1b" in result._repr_html_()
    assert "memory, peak" in result.draw(kind="memory")
    result.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 100_000
    result.trace(tmp_path / "run.json")
    assert (tmp_path / "run.json").stat().st_size > 1000
    result.save(tmp_path / "run.pb")
    assert "<svg" in weir.draw(tmp_path / "run.pb")
    assert result.scenario.schedule == "1f1b"
    without = weir.simulate(given, timeline=False)
    with pytest.raises(ValueError, match="timeline=True"):
        without.draw()
    assert "<svg" not in without._repr_html_()


def test_files_are_replaced(given: weir.Scenario, tmp_path: typing.Any) -> None:
    """All methods that write files make folders and replace files of others."""
    result = weir.simulate(given)
    schedule = weir.schedule("1f1b", 2, 3)
    for write, name in ((result.save, "a.pb"), (result.trace, "a.json"),
                        (result.report, "a.html"), (result.draw().save, "a.svg"),
                        (schedule.save, "a.csv"), (given.save, "a.textproto")):
        path = tmp_path / "new" / name.partition(".")[2] / name
        for _ in range(2):
            write(path)
            assert path.stat().st_size > 20
            path.write_text("of someone else")
        with pytest.raises(weir.InputError) as caught:
            write(path / name)
        assert caught.value.file == str(path / name)


def test_pandas(given: weir.Scenario) -> None:
    pytest.importorskip("pandas")
    frame = weir.simulate(given).to_pandas()
    assert list(frame["rank"]) == [0, 1, 2, 3]
    frame = weir.compare(given, ["1f1b", "gpipe"]).to_pandas()
    assert list(frame["schedule"]) == ["1f1b", "gpipe"]


def test_a_result_that_does_not_fit_is_a_result(llama: weir.Scenario) -> None:
    result = weir.simulate(llama, pp=2, tp=1, timeline=False)
    assert not result.fits_memory
    assert "does not fit" in repr(result)


def test_compare(given: weir.Scenario) -> None:
    given.costs = weir.GivenCosts(stages=[weir.GivenCostsStage(
        forward_seconds=1, backward_input_seconds=1, backward_weight_seconds=1)])
    runs = weir.compare(given, ["1f1b", "gpipe", "zb-h1"])
    assert [run.schedule for run in runs] == ["1f1b", "gpipe", "zb-h1"]
    assert runs["gpipe"].step_seconds == pytest.approx(33, rel=1e-9)
    assert runs.fastest.schedule == "zb-h1"
    assert len(runs.to_dict()) == 3 and "<table>" in runs._repr_html_()


def test_compare_accepts_other_forms(given: weir.Scenario) -> None:
    both = weir.compare(given, "1f1b,gpipe")
    assert [result.schedule for result in both] == ["1f1b", "gpipe"]
    assert both["gpipe"].schedule == "gpipe"
    numpy = pytest.importorskip("numpy")
    assert len(weir.compare(given, numpy.array(["1f1b", "gpipe"]))) == 2
    one = weir.compare(given, weir.schedule("1f1b", 4, 8))
    assert repr(one).startswith("<weir.Comparison of 1 schedule>")


def test_compare_needs_a_schedule(given: weir.Scenario) -> None:
    with pytest.raises(weir.InputError, match="schedules is empty"):
        weir.compare(given, [])


def test_compare_reports_what_cannot_run(given: weir.Scenario) -> None:
    runs = weir.compare(given, ["1f1b", "dualpipe"], microbatches=3)
    assert [run.schedule for run in runs] == ["1f1b"]
    assert any("dualpipe" in warning for warning in runs.warnings)


def test_deadlock_is_an_exception(given: weir.Scenario) -> None:
    bad = weir.Schedule([["0F0", "0F1", "0B0", "0B1"], ["1B0", "1F0", "1F1", "1B1"]])
    given.parallelism = None
    given.num_microbatches = None
    with pytest.raises(weir.WeirError):
        weir.simulate(given, schedule=bad)


def test_errors_name_the_scenario(given: weir.Scenario) -> None:
    given.schedule = "1f2b"
    with pytest.raises(weir.InputError) as caught:
        weir.simulate(given)
    assert "1f1b" in str(caught.value) and "/tmp" not in str(caught.value)
    with pytest.raises(weir.InputError) as caught:
        weir.simulate("llama-3-70b-64-h100", pp=0)
    assert caught.value.field == "--pp" and caught.value.found == "0"


def test_the_gil_is_released(llama: weir.Scenario) -> None:
    """Python goes on while another thread estimates."""
    weir.estimate(llama)
    ticks = 0
    done = threading.Event()

    def work() -> None:
        weir.estimates([llama] * 100)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 3


@pytest.mark.parametrize("call", [
    "weir.simulate('llama-3-70b-64-h100', gbs=16384, timeline=False)",
    "weir.plan(model='llama-3-70b', cluster='dgx-h100', gpus=512, gbs=512).result()",
    "list(weir.plan(model='llama-3-70b', cluster='dgx-h100', gpus=512, gbs=512))",
    "weir.estimates([weir.Scenario.load('llama-3-70b-64-h100', schedule="
    "'interleaved-1f1b:v=2')] * 10000)",
    "weir.sweep('llama-3-70b-64-h100', {'gbs': '128..4096+128', 'schedule': 'zb-h1,zb-v'})",
])
def test_ctrl_c(call: str) -> None:
    code = ("import sys, weir\ntry:\n"
            f"  print('start', flush=True); {call}; print('ended')\n"
            "except KeyboardInterrupt: print('interrupted')\n")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "start\n"
    time.sleep(1.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out = process.stdout.read()
    assert process.wait(timeout=20) == 0
    assert out == "interrupted\n" and time.monotonic() - begin < 15
    # Nothing of the session is left.
    time.sleep(0.2)
    listing = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True)
    assert not [line for line in listing.stdout.splitlines()
                if line.split()[0] == str(process.pid)]


def test_fork_and_estimate(given: weir.Scenario) -> None:
    """Forked children of a process that has estimated can estimate, too."""
    expected = weir.estimate(given).step_seconds
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr(weir.estimate(given).step_seconds).encode())
        os._exit(0)
    os.close(write)
    assert float(os.read(read, 100)) == expected
    assert os.waitpid(child, 0)[1] == 0
