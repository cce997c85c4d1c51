"""Keys that become one are found, all of them and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.state.key_collisions import Origins
from holdfast.state.regrouping import Moved


@given(st.dictionaries(st.integers(0, 200), st.integers(0, 60)), st.integers(1, 3))
def test_every_new_key_with_several_origins_is_suspected(keys: dict[int, int], times: int) -> None:
    origins = Origins()
    for old, new in [*keys.items()] * times:
        origins.add(Moved(str(old).encode(), str(new).encode(), b"", b""))
        if old % 7 == 0:
            origins._compact()
    olds: dict[int, set[int]] = {}
    for old, new in keys.items():
        olds.setdefault(new, set()).add(old)
    expected = {hash(str(new).encode()) for new, found in olds.items() if len(found) > 1}
    assert set(origins.suspects()) == expected
