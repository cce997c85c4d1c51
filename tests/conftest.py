"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Machines that run the suite share their cores, so the time of a single example says nothing.
settings.register_profile("holdfast", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")
