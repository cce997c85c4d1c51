"""What a failed comparison of state says: both sides, and where they differ."""

from __future__ import annotations

from typing import Any

_MISSING = object()


def check_content(what: str, expected: Any, found: Any) -> None:
    """AssertionError that begins with ``what`` unless both are equal. Dicts are compared entry by entry."""
    __tracebackhide__ = True
    if expected == found:
        return
    lines = [f"{what} is not as expected:"]
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [*expected, *(key for key in found if key not in expected)]
        for key in keys:
            one, other = expected.get(key, _MISSING), found.get(key, _MISSING)
            if one is _MISSING or other is _MISSING or one != other:
                lines += [f"  {key!r}", f"    expected: {_text(one)}", f"    found:    {_text(other)}"]
        same = sum(key in found and found[key] == expected[key] for key in expected)
        lines.append(f"  {same} of {len(keys)} are equal.")
    else:
        lines += [f"  expected: {_text(expected)}", f"  found:    {_text(found)}"]
    raise AssertionError("\n".join(lines))


def _text(value: Any) -> str:
    return "nothing" if value is _MISSING else repr(value)
