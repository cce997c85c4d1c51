"""Packages that an application needs for its settings, beside those that every one needs."""

from __future__ import annotations

from collections.abc import Iterable

_OF_BACKENDS = {"rocksdb": ("rocksdict",)}
#: By the scheme of a storage: what creates files exclusively there.
_OF_STORAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), ("boto3",)),
    **dict.fromkeys(("gs", "gcs"), ("google-auth", "requests")),
}


def packages_for(backend: str, storages: Iterable[str]) -> tuple[str, ...]:
    """On every host, for a state backend and the storages of snapshots."""
    schemes = {uri.partition(":")[0] for uri in storages}
    found = [*_OF_BACKENDS.get(backend, ()), *(name for scheme in schemes for name in _OF_STORAGES.get(scheme, ()))]
    return tuple(sorted(set(found)))
