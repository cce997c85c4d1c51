"""How many examples the tests of properties try, by Hypothesis's profile: ``quick`` is that of ``make test-fast``, and
``HYPOTHESIS_PROFILE=thorough make test`` tries many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

#: Without a profile in the environment.
USUAL = "holdfast"
#: By profile: what a number of examples that a test asks for is multiplied by.
_FACTORS = {USUAL: 0.5, "quick": 0.1, "thorough": 10.0}
#: Of a test that asks for no number.
_EXAMPLES = 60
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", USUAL)


def load_profile() -> None:
    """For all tests of this process."""
    # Machines that run the suite share their cores, so the time of a single example says nothing.
    for name in _FACTORS:
        settings.register_profile(
            name, deadline=None, max_examples=examples(_EXAMPLES), suppress_health_check=[HealthCheck.too_slow]
        )
    settings.load_profile(_PROFILE)


def examples(count: int) -> int:
    """``count``, as few or as many times as the profile says, for ``settings(max_examples=...)``."""
    return max(1, round(count * _FACTORS.get(_PROFILE, 1.0)))
