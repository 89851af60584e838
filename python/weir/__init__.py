# SPDX-License-Identifier: Apache-2.0
"""Simulates pipeline-parallel training: how long a step takes, how much memory
every GPU needs, and why.

    import weir

    scenario = weir.Scenario.load("llama-3-70b-64-h100", schedule="zb-h1")
    result = weir.simulate(scenario)
    print(result.step_seconds, result.peak_memory_bytes)

See docs/python.md.
"""

from weir import messages
from weir._core import Estimate, __version__, git_revision
from weir._figures import Figure
from weir.catalog import cluster, clusters, model, models, profile, profiles, scenarios
from weir.errors import (
    InputError,
    InternalError,
    MissingError,
    NegativeResultError,
    Problem,
    ScenarioWarning,
    WeirError,
)
from weir.messages import (
    Batch,
    Communication,
    GivenCosts,
    GivenCostsStage,
    Parallelism,
    Scenario,
    Training,
    Transformer,
)
from weir.plans import Plan, Planning, PlanReport, plan
from weir.results import Comparison, Result
from weir._schedules import Finding, LintReport, Schedule, schedule, schedules
from weir.simulation import compare, draw, estimate, estimates, simulate
from weir.sweeps import SweepResult, sweep
from weir.validation import Validation, report, validate

__all__ = [
    "Batch",
    "Communication",
    "Comparison",
    "Estimate",
    "Figure",
    "Finding",
    "GivenCosts",
    "GivenCostsStage",
    "InputError",
    "InternalError",
    "LintReport",
    "MissingError",
    "NegativeResultError",
    "Parallelism",
    "Plan",
    "PlanReport",
    "Planning",
    "Problem",
    "Result",
    "Scenario",
    "ScenarioWarning",
    "Schedule",
    "SweepResult",
    "Training",
    "Transformer",
    "Validation",
    "WeirError",
    "__version__",
    "cluster",
    "clusters",
    "compare",
    "draw",
    "estimate",
    "estimates",
    "git_revision",
    "messages",
    "model",
    "models",
    "plan",
    "profile",
    "profiles",
    "report",
    "scenarios",
    "schedule",
    "schedules",
    "simulate",
    "sweep",
    "validate",
]
