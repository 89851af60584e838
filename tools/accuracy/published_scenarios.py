# SPDX-License-Identifier: Apache-2.0
"""Turns rows of published_2.csv into scenarios of weir.

A scenario is a dictionary from columns of `weir validate --measured` (options
of `weir simulate` without dashes, fields of weir.Transformer) to text. Nothing
here depends on a measured value.
"""
import csv
import os
import re

FOLDER = os.path.dirname(os.path.abspath(__file__))
SETS = os.path.join(FOLDER, "..", "..", "results", "published", "sets")

CLUSTERS = {"H100": "dgx-h100", "B200": "dgx-b200", "B300": "dgx-b300",
            "GB200": "gb200-nvl72", "GB300": "gb300-nvl72",
            "H100-96GB 500W": "dgx-h100"}
PROFILES = {"a100_40gb": "a100-sxm-40gb", "a100_80gb": "a100-sxm-80gb",
            "h100_80gb": "h100-sxm",
            "V100-16GB": "v100-sxm2-16gb", "V100-32GB": "v100-sxm2-32gb",
            "H100-96GB 500W": "h100-sxm-96gb-500w"}
# Number formats of the tables. A cell with two formats states the first.
PRECISIONS = {"BF16": "bf16", "FP16": "fp16", "FP8": "fp8-current",
              "FP8-CS": "fp8-current", "FP8-MX": "mxfp8", "MXFP8": "mxfp8",
              "NVFP4": "nvfp4", "FP8 tensorwise": "fp8-current"}
# NeMo 24.07 and the DGX Cloud recipes used delayed scaling.
DELAYED = ("NVIDIA DGX Cloud performance recipes",
           "NeMo 24.07 performance benchmarks")
PRESETS = {"deepseek-v3": "deepseek-v3", "kimi-k2": "kimi-k2",
           "gpt-oss-120b": "gpt-oss-120b", "qwen3-30b-a3b": "qwen3-30b-a3b",
           "qwen3-235b-a22b": "qwen3-235b-a22b",
           "llama3-8b": "llama-3.1-8b", "llama3-70b": "llama-3.1-70b",
           "llama3.1-405b": "llama-3.1-405b",
           "llama4-maverick": "llama-4-maverick",
           "nemotron4-340b": "nemotron-4-340b"}
CONFIGS = {
    "Nemotron_3_Super": "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "Nemotron_3_Ultra": "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
    "deepseek-v4-flash": "deepseek-ai--DeepSeek-V4-Flash"}
HYBRIDS = ("Nemotron_3",)
# Layers and widths that the Slurm scripts beside experiments/gpt2.md name
# (bigscience-workshop/bigscience, 9e64edec2); no script has 22B and 50B.
GPT2_SIZES = {"7.5B": (36, 4096), "18B": (40, 6144), "30B": (48, 7168),
              "39B": (48, 8192), "52B": (64, 8192), "65B": (64, 9216),
              "116B": (64, 12288)}
# Nemotron-3 22B: Nemotron3Config22B of NVIDIA/NeMo, llm/gpt/model/nemotron.py.
NEMOTRON_22B = {"layers": "40", "hidden": "6144", "heads": "48",
                "kv_heads": "48", "ffn": "24576"}
TRANSFORMER = ("num_layers hidden_size num_heads num_kv_heads "
               "feed_forward_size vocabulary_size num_positions "
               "gated_feed_forward rms_norm causal "
               "tied_embeddings num_experts experts_per_token "
               "expert_feed_forward_size").split()


class Inexpressible(Exception):
    """A row that no scenario of weir describes, with the reason."""


def number(row, key, default=None):
    """Returns the first number of a field."""
    value = re.match(r"\s*([\d.]+)", row[key])
    if value:
        return value.group(1)
    if default is None:
        raise Inexpressible(f"the table does not state {key}")
    return default


def base_scenario(name):
    path = os.path.normpath(os.path.join(SETS, name + ".textproto"))
    return {"scenario": path}


def precision_name(row):
    return re.sub(r" \(.*", "", row["precision"])


def precision_of(row):
    name = precision_name(row)
    if name not in PRECISIONS:
        raise Inexpressible(f"number format {row['precision'] or 'not stated'}")
    if row["source"] in DELAYED and name == "FP8":
        return "fp8-delayed"
    return PRECISIONS[name]


def model_of(row, data):
    name = row["model"]
    if name in PRESETS:
        return {"model": PRESETS[name]}
    if name in CONFIGS:
        return {"model": os.path.join(data, "model_configs",
                                      CONFIGS[name] + "_config.json")}
    if name == "nemotron3-22b":
        row = {**row, **NEMOTRON_22B}
    if not row["layers"] or not row["hidden"] or not row["ffn"]:
        raise Inexpressible("the table does not state the model's dimensions")
    gated = name.startswith(("llama", "grok"))
    fields = {"num_layers": row["layers"], "hidden_size": row["hidden"],
              "num_heads": row["heads"],
              "num_kv_heads": row["kv_heads"] or row["heads"],
              "feed_forward_size": number(row, "ffn"),
              "vocabulary_size": number(row, "vocab"),
              "gated_feed_forward": str(gated).lower(), "causal": "true",
              "rms_norm": str(gated).lower(),
              "tied_embeddings": str(name.startswith("gpt3")).lower()}
    if row["experts"]:
        fields.update(num_experts=row["experts"],
                      experts_per_token=row["topk"],
                      expert_feed_forward_size=number(row, "ffn"))
    return fields


def partition_of(num_blocks, num_stages):
    """Returns the columns of an uneven partition, or {} for an even one.

    The embedding and the head take the place of a block each if the numbers
    match (Megatron-LM's --account-for-...-in-pipeline-split); otherwise the
    last stages, with the head, have a block less.
    """
    if num_stages == 1 or num_blocks % num_stages == 0:
        return {}
    if (num_blocks + 2) % num_stages == 0:
        each = (num_blocks + 2) // num_stages
        if each == 1:
            return {"layout": f"E|(t|)*{num_blocks}L"}
        blocks = [each] * num_stages
        blocks[0] -= 1
        blocks[-1] -= 1
    else:
        least, more = divmod(num_blocks, num_stages)
        blocks = [least + 1] * more + [least] * (num_stages - more)
    return {"blocks_per_stage": ",".join(map(str, blocks))}


def expert_parallel_of(row):
    """Returns the expert-parallel size.

    DGX Cloud's DeepSeek-V3 has one for each of three numbers of GPUs.
    """
    sizes = row["ep"].split("/")
    if len(sizes) == 3:
        return sizes[{"128": 0, "256": 1, "512": 2}[row["n_gpus"]]]
    return number(row, "ep", "1")


def expert_tensor_of(row):
    """Returns the expert tensor-parallel size, or "" for the tensor-parallel.

    The recipes of Megatron-Bridge set it to 1 unless the table states it.
    """
    if row["etp"]:
        return number(row, "etp")
    folded = "Megatron-Bridge" in row["source"] and row["ep"] not in ("", "1")
    return "1" if folded else ""


def load_recipes():
    with open(os.path.join(FOLDER, "published_recipes.csv"),
              newline="") as file:
        return list(csv.DictReader(file))


def recipe_of(row, recipes):
    """Returns settings of a row's recipe that the table leaves out, and what of
    it weir does not simulate. "containers" are first words of tables."""
    container = row["table"].split()[0]
    for recipe in recipes:
        if (recipe["model"] == row["model"]
                and row["gpu"] in recipe["device"].split("|")
                and precision_name(row).startswith(recipe["format"])
                and container.startswith(
                    tuple(recipe["containers"].split("|")))
                and recipe["microbatch"] in ("", row["mbs"])):
            pairs = [setting.partition("=")
                     for setting in recipe["settings"].split(";")]
            settings = {name: value.replace("|", ",")
                        if name in ("recompute_modules", "cuda_graph_scope")
                        else value
                        for name, _, value in pairs}
            return settings, settings.pop("not", "")
    return {}, ""


def program_of(row):
    """Returns the settings of the training program of NeMo's sources."""
    fields = {"runtime": "nemo", "distributed_optimizer": "true",
              "fp32_gradients": "false", "gradient_reduction": "overlapped",
              "flash_attention": "true"}
    if re.search(r"FSDP=[1-9]", row["notes"]):
        fields.update(fully_sharded="true", distributed_optimizer="")
    if "LoRA" in row["notes"]:
        # NeMo's default: adapters of rank 32 at all four linear layers.
        fields.update(lora_rank="32")
    return fields


def nemo_fields(row, data, recipes):
    fields = {"cluster": CLUSTERS[row["gpu"]],
              "profile": PROFILES.get(row["gpu"], ""),
              "gpus": number(row, "n_gpus"), "tp": number(row, "tp", "1"),
              "pp": number(row, "pp", "1"), "cp": number(row, "cp", "1"),
              "ep": expert_parallel_of(row), "etp": expert_tensor_of(row),
              "mbs": number(row, "mbs"), "gbs": number(row, "gbs"),
              "seq": number(row, "seq"), "precision": precision_of(row)}
    if fields["cluster"].endswith("nvl72"):
        # Powers of two: jobs get 16 of a rack's 18 trays (Slurm's segments).
        fields["nvlink_domain"] = "64"
    fields.update(program_of(row))
    fields.update(model_of(row, data))
    fields["sequence_parallel"] = "true" if fields["tp"] != "1" else ""
    chunks = int(float(number(row, "vp", "1")))
    stages = int(fields["pp"])
    if chunks > 1 and stages > 1:
        fields.update(schedule="interleaved-1f1b", chunks=str(chunks))
        stages *= chunks
    else:
        fields["schedule"] = "1f1b"
    recipe, _ = recipe_of(row, recipes)
    if row["layers"].isdigit() and "layout" not in recipe:
        fields.update(partition_of(int(row["layers"]), stages))
    if row["recompute"].startswith("selective"):
        fields["recompute"] = "selective"
    fields.update(recipe)
    return fields


def bloom_fields(row):
    fields = base_scenario("bloom_bf16" if "fp32 grad" in row["precision"]
                           else "bloom")
    stages = int(number(row, "pp"))
    fields.update(num_layers=row["layers"], hidden_size=row["hidden"],
                  num_heads=row["heads"], gpus=number(row, "n_gpus"),
                  tp=number(row, "tp"), pp=str(stages), mbs=number(row, "mbs"),
                  gbs=number(row, "gbs"), precision=precision_of(row),
                  distributed_optimizer="true")
    fields.update(partition_of(int(row["layers"]), stages))
    return fields


def gpt2_fields(row):
    if row["params"] not in GPT2_SIZES:
        raise Inexpressible("the table does not state the model's dimensions")
    layers, width = GPT2_SIZES[row["params"]]
    deepspeed = "Deepspeed" in row["table"]
    fields = base_scenario("gpt2_deepspeed" if deepspeed else "gpt2_megatron")
    stages = int(number(row, "pp"))
    if int(number(row, "tp")) * stages > int(number(row, "n_gpus")):
        raise Inexpressible("the layout needs more GPUs than the table names")
    fields.update(num_layers=str(layers), hidden_size=str(width),
                  gpus=number(row, "n_gpus"), tp=number(row, "tp"),
                  pp=str(stages), mbs=number(row, "mbs"),
                  gbs=number(row, "gbs"), profile=PROFILES[row["gpu"]])
    fields.update(partition_of(layers, stages))
    return fields


def mpt_fields(row):
    pure = "PURE" in row["notes"]
    fields = base_scenario("mpt_h100" if row["gpu"].startswith("h100")
                           else "mpt_a100")
    fields.update(profile=PROFILES[row["gpu"]], num_layers=row["layers"],
                  hidden_size=row["hidden"], num_heads=row["heads"],
                  num_positions=row["seq"], seq=row["seq"],
                  recompute=row["recompute"] or "none",
                  fp32_gradients="" if pure else "true",
                  gpus=number(row, "n_gpus"), mbs=number(row, "mbs"),
                  gbs=number(row, "gbs"))
    return fields


def torchtitan_fields(row, data):
    fields = base_scenario("torchtitan_async_tp" if "async" in row["table"]
                           else "torchtitan_tp")
    tensor, context = number(row, "tp", "1"), number(row, "cp", "1")
    gpus, mbs = number(row, "n_gpus"), number(row, "mbs")
    replicas = int(gpus) // int(tensor) // int(context)
    recompute = "full" if row["recompute"] == "full" else "operators"
    fields.update(model_of(row, data), gpus=gpus, tp=tensor, cp=context,
                  mbs=mbs, seq=number(row, "seq"), recompute=recompute,
                  precision=precision_of(row),
                  # The job configurations have one microbatch.
                  gbs=number(row, "gbs", str(int(mbs) * replicas)))
    return fields


def launcher_fields(row):
    """The layouts are those of the configurations beside the table."""
    if row["model"] == "gpt3-175b":
        fields = base_scenario("nemo_launcher_175b")
        fields.update(tp="4", pp="8", chunks="12", mbs="1")
    else:
        fields = base_scenario("nemo_launcher_5b")
        fields.update(tp="1", mbs="4")
    fields.update(gpus=number(row, "n_gpus"), gbs="2048")
    return fields


def perseus_fields(row):
    """Stage times are measured; weir predicts the pipeline."""
    times = {}
    for letter in "FB":
        found = re.search(letter + r" \[([\d., ]+)\] ms", row["notes"])
        if found is None:
            raise Inexpressible("the table does not state stage times")
        times[letter] = "/".join(value.strip() + "ms"
                                 for value in found.group(1).split(","))
    microbatches = int(number(row, "gbs")) // int(number(row, "mbs"))
    return {"schedule": "1f1b", "pp": number(row, "pp"),
            "microbatches": str(microbatches),
            "costs": f"f={times['F']},b={times['B']}"}


def scenario_of(row, data, recipes):
    """Returns the columns of `weir validate --measured` for a row.

    `data` is the folder of the table. Raises Inexpressible.
    """
    source = row["source"]
    if row["metric"] == "energy_per_step":
        raise Inexpressible("no power model of the device (A100 PCIe, A40)")
    if re.search(r"TOKEN DROP|tokendrop", row["notes"]):
        raise Inexpressible("experts drop tokens: a model from a config.json "
                            "has no capacity factor")
    if source.startswith("ByteDance"):
        raise Inexpressible("model and device are not disclosed")
    if source.startswith("BigScience BLOOM"):
        fields = bloom_fields(row)
    elif source.startswith("BigScience GPT-2"):
        fields = gpt2_fields(row)
    elif source.startswith("MPT"):
        fields = mpt_fields(row)
    elif source.startswith("torchtitan"):
        fields = torchtitan_fields(row, data)
    elif source.startswith("NeMo Launcher"):
        fields = launcher_fields(row)
    elif source.startswith("Perseus"):
        fields = perseus_fields(row)
    elif row["gpu"] not in CLUSTERS:
        raise Inexpressible(f"device {row['gpu']}")
    else:
        fields = nemo_fields(row, data, recipes)
    return {key: value for key, value in fields.items() if value != ""}


def class_of(row):
    """Returns the class of issue "current training" that a row belongs to."""
    if row["model"].startswith(HYBRIDS):
        return "hybrids"
    if row["experts"] or row["model"] in CONFIGS:
        return "experts"
    if number(row, "cp", "1") != "1":
        return "context parallelism"
    wide = precision_name(row).startswith(("BF16", "FP16", "FP32"))
    return "dense, 16 bits" if wide else "dense, FP8 and NVFP4"
