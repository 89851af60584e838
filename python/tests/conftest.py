# SPDX-License-Identifier: Apache-2.0
import pathlib

import pytest

import weir

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture
def given() -> weir.Scenario:
    """4 ranks x 8 microbatches with given costs: a step takes 33 s."""
    return weir.Scenario(
        name="given",
        costs=weir.GivenCosts(
            stages=[weir.GivenCostsStage(forward_seconds=1, backward_seconds=2)]
        ),
        parallelism=weir.Parallelism(pipeline=4),
        num_microbatches=8,
        schedule="1f1b",
    )


@pytest.fixture
def llama() -> weir.Scenario:
    return weir.Scenario.load("llama-3-70b-64-h100")
