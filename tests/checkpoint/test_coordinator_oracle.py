"""Checkpoints in any order, against what a dictionary says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.reasons import CheckpointFailureReason as Reason
from holdfast.state.handles import CheckpointRequest
from tests.checkpoint.samples import DictJob

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["epoch", "complete", "complete full", "abort", "begin", "finish", "restart", "driver"]),
        st.integers(0, 1),
        st.integers(0, 5),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
    max_size=40,
)


@given(steps=STEPS, num_retained=st.integers(1, 3))
def test_state_is_that_of_the_last_completed_checkpoint(
    steps: list[tuple[str, int, int, int | None]],
    num_retained: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    policy = CheckpointPolicy(max_concurrent=3, tolerable_failures=100)
    job = DictJob(tmp_path_factory.mktemp("job"), policy, num_retained, inline_threshold=20)
    durable = job.empty()
    begun: list[tuple[CheckpointRequest, list[dict[str, int]]]] = []
    for action, subtask, key, value in steps:
        change = [(subtask, f"k{key}", value)]
        if action in ("epoch", "begin", "abort", "complete", "complete full"):
            request = job.run_epoch(change, checkpoint=action != "epoch", full=action == "complete full")
            image = [dict(part) for part in job.state]
        if action in ("complete", "complete full"):
            assert request is not None
            job.acknowledge_all(request)
            assert job.coordinator.complete(request.checkpoint_id) is not None
            durable, begun = image, []
        elif action == "begin":
            assert request is not None
            job.acknowledge_all(request)
            begun.append((request, image))
        elif action == "abort":
            assert request is not None
            job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 1))
            job.coordinator.abort(request.checkpoint_id, Reason.CHECKPOINT_DECLINED)
        elif action == "finish" and begun:
            request, image = begun.pop(0)
            assert job.coordinator.complete(request.checkpoint_id) is not None
            durable = image
        elif action in ("restart", "driver"):
            begun = []
            job.new_driver() if action == "driver" else job.restart()
            assert job.state == durable
    for kept in job.store.all():
        job.storage.verify(kept.metadata)
    job.new_driver()
    assert job.state == durable
