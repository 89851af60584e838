# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import copy
import pickle
import threading
import time
import typing

import pytest

import weir

SPACE = {"model": "gpt2", "cluster": "dgx-h100", "gpus": 8, "gbs": 32,
         "schedule": "1f1b,gpipe", "jobs": 2}


def test_plans_improve() -> None:
    search = weir.plan(**SPACE)
    plans = list(search)
    assert plans
    seconds = [plan.step_seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    report = search.result()
    assert report.best.step_seconds == pytest.approx(seconds[-1], rel=1e-9)
    assert report.end == "complete"
    assert report.counts["simulated"] >= 1
    result = report.best.simulate(timeline=False)
    assert result.step_seconds == pytest.approx(report.best.step_seconds, rel=1e-9)
    assert weir.estimate(plans[0].scenario).step_seconds == pytest.approx(seconds[0], rel=1e-9)


def test_pareto_front(tmp_path: typing.Any) -> None:
    report = weir.plan(**{**SPACE, "objective": "pareto"}).result()
    assert len(report.plans) >= 2
    by_time = sorted(report.plans, key=lambda plan: plan.step_seconds)
    peaks = [plan.peak_memory_bytes for plan in by_time]
    assert peaks == sorted(peaks, reverse=True)
    assert "<svg" in report.draw()
    report.report(tmp_path / "plans.html")
    assert (tmp_path / "plans.html").exists()
    assert "<table>" in report._repr_html_()


def test_stop_keeps_the_best_plans() -> None:
    search = weir.plan(model="llama-3.1-8b", cluster="dgx-h100", gpus=64, gbs=256, patience=0)
    first = next(search)
    report = search.stop()
    assert report.plans and report.best.step_seconds <= first.step_seconds * (1 + 1e-9)


def test_stop_before_the_first_plan() -> None:
    """It is no Ctrl-C of the user."""
    search = weir.plan(model="llama-3.1-405b", cluster="dgx-h100", gpus=512, gbs=512)
    with pytest.raises(weir.NegativeResultError, match="stopped before it found a plan"):
        search.stop()


def test_a_search_outlives_the_thread_that_started_it() -> None:
    searches: typing.List[weir.Planning] = []

    def start() -> None:
        searches.append(weir.plan(model="llama-3.1-8b", cluster="dgx-h100", gpus=64, gbs=256,
                                  patience=0))
        next(searches[0])

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    time.sleep(0.5)
    assert searches[0].stop().plans


def test_stop_from_another_thread() -> None:
    for read in (list, weir.Planning.result):
        search = weir.plan(model="llama-3.1-8b", cluster="dgx-h100", gpus=64, gbs=256, patience=0)
        next(search)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(read, search)
            time.sleep(0.3)
            report = search.stop()
            assert report.end == "interrupt" and report.plans
            if read is not list:
                assert other.result().to_dict() == report.to_dict()
        assert search.result().to_dict() == report.to_dict()
        search.close()
        assert search.result().plans


def test_a_closed_search_has_no_result() -> None:
    def start() -> weir.Planning:
        search = weir.plan(model="llama-3.1-8b", cluster="dgx-h100", gpus=64, gbs=256, patience=0)
        next(search)
        return search

    with start() as search:
        pass
    for call in (search.result, search.stop, search.__next__):
        with pytest.raises(weir.NegativeResultError, match="closed before its end"):
            call()
    search = start()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(search.result)
        time.sleep(0.3)
        search.close()
        with pytest.raises(weir.NegativeResultError, match="closed before its end"):
            other.result()


def test_planners_of_papers_are_refused() -> None:
    with pytest.raises(weir.InputError) as caught:
        weir.plan("gpt3-175b-selene", algorithm="dapple")
    assert caught.value.field == "--algorithm" and caught.value.found == "'dapple'"


def test_plans_name_no_temporary_files() -> None:
    report = weir.plan(weir.Scenario(model="gpt2", cluster="dgx-a100"), gpus=2, gbs=8,
                       schedule="1f1b", recompute="none", mbs=1).result()
    assert "/weir-" not in str(report.to_dict())


def test_nothing_fits() -> None:
    with pytest.raises(weir.NegativeResultError):
        weir.plan(**{**SPACE, "memory_limit": "1GiB"}).result()


def test_wrong_flags() -> None:
    with pytest.raises(weir.InputError, match="--gpuss"):
        weir.plan(gpuss=8).result()


def test_sweep(given: weir.Scenario, tmp_path: typing.Any) -> None:
    points = weir.sweep(given, {"num_microbatches": [4, 8, 16], "schedule": ["1f1b", "gpipe"]})
    assert len(points) == 6
    assert list(points) == points.points and points[5] == points.points[5]
    for point in points.points:
        expected = (point["num_microbatches"] + 3) * 3
        assert point["batch_seconds"] == pytest.approx(expected, rel=1e-9)
    assert "<svg" in points.draw()
    fast = weir.sweep(given, {"num_microbatches": "4,8,16", "schedule": "1f1b,gpipe"},
                      method="fast", folder=tmp_path / "sweep")
    assert [p["batch_seconds"] for p in fast.points] == pytest.approx(
        [p["batch_seconds"] for p in points.points])
    fast.report(tmp_path / "sweep.html")
    assert (tmp_path / "sweep.html").exists()


def test_sweep_errors(given: weir.Scenario) -> None:
    with pytest.raises(weir.InputError) as caught:
        weir.sweep(given, {"microbatchs": [4]})
    assert "is not a field of Scenario" in str(caught.value)
    with pytest.raises(weir.InputError, match="grid is 'tp=1,2', expected names"):
        weir.sweep(given, "tp=1,2")  # type: ignore[arg-type]
    with pytest.raises(weir.InputError, match="--grid is <weir.Schedule 1f1b: 4 ranks>"):
        weir.sweep(given, {"schedule": [weir.schedule("1f1b", 4, 8)]})


def test_values_of_a_grid_may_be_arrays(given: weir.Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    points = weir.sweep(given, {"num_microbatches": numpy.array([4, 8])})
    assert [point["num_microbatches"] for point in points] == [4, 8]


def test_sweeps_can_be_copied(given: weir.Scenario) -> None:
    points = weir.sweep(given, {"num_microbatches": [4, 8], "schedule": "1f1b,zb-h1"})
    assert points.folder is None
    for copied in (copy.deepcopy(points), pickle.loads(pickle.dumps(points))):
        assert copied.to_dict() == points.to_dict() and copied.draw() == points.draw()
    with pytest.raises(weir.InputError) as caught:
        points.draw(fields="tp,pp")
    assert "/weir-" not in str(caught.value)
    assert "/weir-" not in str(points.to_dict())


def test_values_of_a_grid_may_be_switches() -> None:
    points = weir.sweep("llama-3-70b-64-h100", {"sequence_parallel": [True, False]},
                        method="fast", gbs=16)
    assert [point["sequence_parallel"] for point in points] == [True, False]


def test_validate(tmp_path: typing.Any) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("tp,pp,dp,gbs,step_seconds\n4,8,2,128,18.0\n4,8,2,64,9.5\n")
    checked = weir.validate(table, "llama-3-70b-64-h100")
    assert len(checked.rows) == 2
    expected = weir.estimate("llama-3-70b-64-h100").step_seconds
    assert checked.rows[0]["predicted"] == pytest.approx(expected, rel=1e-9)
    assert checked.statistics[0]["count"] == 2
    assert "<svg" in checked.draw()
    assert repr(checked) == "<weir.Validation of 2 runs>" and not checked.warnings


def test_runs_that_cannot_be_simulated_are_warnings(tmp_path: typing.Any) -> None:
    pandas = pytest.importorskip("pandas")
    runs = pandas.DataFrame({"tp": [4, -1], "pp": 8, "dp": 2, "gbs": [128, 64],
                             "step_seconds": [18.0, 9.5]})
    checked = weir.validate(runs, "llama-3-70b-64-h100")
    assert repr(checked) == "<weir.Validation of 1 of 2 runs>" and len(checked.rows) == 1
    (warning,) = checked.warnings
    assert warning.startswith("line 3 could not be simulated: measured:3: tp is -1")
    assert "tp is -1" in checked._repr_html_()


def test_catalog() -> None:
    assert "llama-3.1-405b" in weir.models()
    assert weir.model("gpt2")["parameters"] == 124439808
    assert "dgx-h100" in weir.clusters()
    assert weir.cluster("dgx-h100")["groups"][0]["node"]["num_gpus"] == 8
    assert "h100-sxm" in weir.profiles()
    assert weir.profile("h100-sxm")["name"] == "H100-SXM5-80GB"
    assert "llama-3-70b-64-h100" in weir.scenarios()
