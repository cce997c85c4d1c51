"""How many executors an application waits for."""

from __future__ import annotations

import math

import pytest

from holdfast.spark.executors import most_executors


@pytest.mark.parametrize(
    ("conf", "most"),
    [
        ({}, math.inf),
        ({"spark.cores.max": "8"}, math.inf),
        ({"spark.cores.max": "8", "spark.executor.cores": "3"}, 2),
        ({"spark.dynamicAllocation.maxExecutors": "4"}, math.inf),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "4"}, 4),
        (
            {
                "spark.dynamicAllocation.enabled": "TRUE",
                "spark.dynamicAllocation.maxExecutors": "infinity",
                "spark.cores.max": "8",
                "spark.executor.cores": "2",
            },
            4,
        ),
        ({"spark.cores.max": "8", "spark.executor.cores": "0"}, math.inf),
    ],
)
def test_an_application_has_all_that_it_asks_for(conf: dict[str, str], most: float) -> None:
    assert most_executors(conf) == most
