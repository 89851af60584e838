# SPDX-License-Identifier: Apache-2.0
import copy
import dataclasses
import inspect
import json
import pickle
import typing

import pytest

import weir
from weir import messages


def test_presets_are_dataclasses(llama: weir.Scenario) -> None:
    assert dataclasses.is_dataclass(llama)
    assert llama.model == "llama-3-70b"
    assert llama.parallelism is not None
    assert (llama.parallelism.tensor, llama.parallelism.pipeline) == (4, 8)


def test_text_round_trip(llama: weir.Scenario) -> None:
    resolved = llama.resolved()
    again = weir.Scenario.from_textproto(resolved.to_textproto())
    assert again == resolved
    assert resolved.training is not None
    assert resolved.training.precision == "mixed_bf16"


def test_flags_are_those_of_the_command_line() -> None:
    scenario = weir.Scenario.load(
        "llama-3-70b-64-h100", pp=4, schedule="zb-h1", flash_attention=False,
        recompute="full", set={"runtime.exchange_seconds": "2e-4"})
    assert scenario.schedule == "zb-h1"
    assert scenario.parallelism is not None and scenario.parallelism.pipeline == 4
    assert scenario.training is not None
    assert scenario.training.flash_attention is False
    assert scenario.training.recompute == "full"
    assert list(scenario.set_figures) == ["runtime.exchange_seconds=2e-4"]


def test_flags_of_numpy(llama: weir.Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    changed = llama.with_flags(
        schedule=numpy.array(["zb-h1"]), pp=range(4, 5), tp=numpy.int64(2),
        set={"gemm.sustained_rate": numpy.float64(0.85)}, sequence_parallel=numpy.bool_(True))
    assert changed.schedule == "zb-h1" and changed.parallelism is not None
    assert (changed.parallelism.pipeline, changed.parallelism.tensor) == (4, 2)
    assert changed.parallelism.sequence_parallel is True
    assert list(changed.set_figures) == ["gemm.sustained_rate=0.85"]


def test_flags_change_a_copy(llama: weir.Scenario) -> None:
    changed = llama.with_flags(pp=16, tp=2)
    assert changed.parallelism is not None and changed.parallelism.pipeline == 16
    assert llama.parallelism is not None and llama.parallelism.pipeline == 8
    assert changed.model == llama.model


def test_hugging_face_config(tmp_path: typing.Any) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 8,
        "n_embd": 512, "n_head": 8, "n_positions": 1024, "vocab_size": 50257}))
    scenario = weir.Scenario.from_huggingface(path, "dgx-h100", pp=4, gbs=32, nodes=1)
    assert scenario.model == str(path)
    result = weir.estimate(scenario)
    assert result.num_gpus == 8 and result.step_seconds > 0
    # A file that changed is read again.
    config = json.loads(path.read_text())
    config["n_layer"] = 16
    path.write_text(json.dumps(config))
    assert weir.estimate(scenario).step_seconds > 1.2 * result.step_seconds


def test_missing_config_is_an_error_at_once() -> None:
    with pytest.raises(weir.InputError, match="nosuch.json: is neither a file nor a preset"):
        weir.Scenario.from_huggingface("nosuch.json", "dgx-h100", pp=4)


def test_megatron_arguments(tmp_path: typing.Any) -> None:
    path = tmp_path / "run.args"
    path.write_text(
        "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
        "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 "
        "--micro-batch-size 1 --global-batch-size 32 --bf16 "
        "--pipeline-model-parallel-size 4 --tensor-model-parallel-size 2 "
        "--tokenizer-type GPT2BPETokenizer\n")
    scenario = weir.Scenario.from_megatron(path, "dgx-h100", nodes=1)
    assert scenario.parallelism is not None
    assert (scenario.parallelism.tensor, scenario.parallelism.pipeline) == (2, 4)
    assert scenario.transformer is not None and scenario.transformer.num_layers == 8
    assert weir.estimate(scenario).step_seconds > 0


def test_ignored_settings_are_warnings(tmp_path: typing.Any) -> None:
    path = tmp_path / "run.args"
    path.write_text("--num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
                    "--seq-length 1024 --micro-batch-size 1 --global-batch-size 32 "
                    "--vocab-size 50257 --no-such-flag 3\n")
    for call in (lambda: weir.Scenario.from_megatron(path, "dgx-h100", nodes=1),
                 lambda: weir.estimate(megatron_args=path, cluster="dgx-h100", nodes=1)):
        with pytest.warns(weir.ScenarioWarning, match="ignored .*: --no-such-flag") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


def test_a_file_of_another_framework_is_refused(tmp_path: typing.Any) -> None:
    path = tmp_path / "job.toml"
    path.write_text('[model]\nname = "llama3"\nflavor = "8B"\n')
    with pytest.raises(weir.InputError, match="job.toml: model is missing"):
        weir.Scenario.from_megatron(path, "dgx-h100", nodes=1)


def test_torchtitan_job(tmp_path: typing.Any) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        '[model]\nname = "llama3"\nflavor = "8B"\n'
        "[training]\nlocal_batch_size = 8\nseq_len = 8192\nsteps = 10\n"
        "[parallelism]\npipeline_parallel_degree = 4\n"
        'tensor_parallel_degree = 2\npipeline_parallel_schedule = "1F1B"\n')
    scenario = weir.Scenario.from_torchtitan(path, "dgx-h100", nodes=1)
    assert scenario.parallelism is not None
    assert (scenario.parallelism.tensor, scenario.parallelism.pipeline) == (2, 4)
    assert weir.estimate(scenario).step_seconds > 0


def _fields() -> "list[tuple[type, str, str]]":
    found = []
    for name in messages.__all__:
        kind = getattr(messages, name)
        if not dataclasses.is_dataclass(kind):
            continue
        for field, hint in typing.get_type_hints(kind).items():
            for inner in [hint, *typing.get_args(hint)]:
                if typing.get_origin(inner) is typing.Literal:
                    found += [(kind, field, value) for value in typing.get_args(inner)]
    return found


SCENARIO_FIELDS = {"training": messages.Training, "parallelism": messages.Parallelism,
                   "communication": messages.Communication,
                   "transformer": messages.Transformer}


def test_enums_have_the_same_values_in_both_languages() -> None:
    checked = 0
    for kind, field, value in _fields():
        for name, type_ in SCENARIO_FIELDS.items():
            if type_ is not kind:
                continue
            repeated = dataclasses.fields(kind)[
                [f.name for f in dataclasses.fields(kind)].index(field)].default == ()
            inner = kind(**{field: [value] if repeated else value})
            scenario = weir.Scenario(**{name: inner})
            text = scenario.to_textproto()
            again = getattr(weir.Scenario.from_textproto(text), name)
            found = getattr(again, field) if again else None
            # Text omits what is 0, the usual value.
            expected = [value] if repeated else value
            assert found == expected or (found is None and value == "none"), (field, value)
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("value, expected", [
    (-1, "a whole number"), ("8", "a whole number"), (2.5, "a whole number"),
    (True, "a whole number"), (2**40, "a whole number")])
def test_wrong_numbers_are_refused(value: typing.Any, expected: str) -> None:
    scenario = weir.Scenario(parallelism=weir.Parallelism(tensor=value))
    with pytest.raises(weir.InputError) as caught:
        scenario.to_textproto()
    error = caught.value
    assert error.file == "scenario" and error.field == "parallelism.tensor"
    assert error.found == repr(value)
    assert error.expected is not None and error.expected.startswith(expected)


def test_unknown_attributes_are_refused(llama: weir.Scenario) -> None:
    assert llama.parallelism is not None
    with pytest.raises(AttributeError, match="no field 'pipline'; did you mean 'pipeline'"):
        llama.parallelism.pipline = 4  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Scenario has no field 'xyzzy'$"):
        llama.xyzzy = 4  # type: ignore[attr-defined]
    for copied in (copy.deepcopy(llama), pickle.loads(pickle.dumps(llama)),
                   dataclasses.replace(llama)):
        assert copied == llama
        copied.schedule = "zb-h1"
        assert copied != llama and copied.with_flags().schedule == "zb-h1"


def test_other_wrong_types_are_refused() -> None:
    for scenario, field in [
        (weir.Scenario(model=5), "model"),  # type: ignore[arg-type]
        (weir.Scenario(slow=3), "slow"),  # type: ignore[arg-type]
        (weir.Scenario(batch=7), "batch"),  # type: ignore[arg-type]
        (weir.Scenario(set_figures="a=1"), "set_figures"),
        (weir.Scenario(training=weir.Training(dropout=1)), "training.dropout"),  # type: ignore[arg-type]
        (weir.Scenario(training=weir.Training(recompute="all")), "training.recompute"),  # type: ignore[arg-type]
        (weir.Scenario(costs=weir.GivenCosts(hop_seconds="x")), "costs.hop_seconds"),  # type: ignore[arg-type]
        (weir.Scenario(model="\udc80"), "model"),
    ]:
        with pytest.raises(weir.InputError) as caught:
            scenario.to_textproto()
        assert caught.value.field == field, caught.value


def test_all_problems_are_reported() -> None:
    scenario = weir.Scenario(
        model="gpt2", cluster="dgx-h100",
        parallelism=weir.Parallelism(tensor=5, pipeline=2, data=1),
        batch=weir.Batch(global_batch_size=8, sequence_length=0),
        training=weir.Training(rollback_fraction=2),
        communication=weir.Communication(bucket_bytes=-1))
    with pytest.raises(weir.InputError) as caught:
        weir.estimate(scenario)
    problems = caught.value.problems
    assert len(problems) == 2
    assert {problem.file for problem in problems} == {"scenario"}
    by_field = {problem.field: problem for problem in problems}
    assert "training.rollback_fraction" in by_field
    assert by_field["training.rollback_fraction"].found == "2"


def test_unknown_names_have_suggestions() -> None:
    with pytest.raises(weir.WeirError, match="llama-3-70b"):
        weir.Scenario.load("llama-3-70b-64-h10")
    with pytest.raises(weir.InputError, match="did you mean"):
        weir.Scenario.load("llama-3-70b-64-h100", schedul="zb-h1")


def test_docstrings_describe_every_field() -> None:
    for name in ("Scenario", "Parallelism", "Training"):
        message = getattr(weir, name)
        for field in dataclasses.fields(message):
            assert f"\n    {field.name}:" in (inspect.getdoc(message) or ""), (name, field.name)
    assert "pipeline: Ranks of one pipeline." in (weir.Parallelism.__doc__ or "")
