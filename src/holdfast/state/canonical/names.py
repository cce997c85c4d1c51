"""File names of operators and states, whatever these are called."""

from __future__ import annotations

from urllib.parse import quote

from holdfast.storage.checksum import checksum

#: What file systems allow, less what temporary names and endings add.
_LONGEST = 120


def file_name(name: str) -> str:
    """A name for a folder that tells ``name``, and that no other name has.

    Letters, digits and ``_ - .`` stay as they are, all others are percent-encoded.
    """
    # surrogatepass: a name is any str, also one that has no UTF-8 form.
    data = name.encode("utf-8", "surrogatepass")
    quoted = quote(data, safe="").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    return quoted if 0 < len(quoted) <= _LONGEST else f"{quoted[:_LONGEST]}%{checksum(data)}"


def folder_name(name: str) -> str:
    """The same for a folder at the top of a savepoint, where names that begin with ``_`` are Holdfast's own."""
    found = file_name(name)
    return f"%5F{found[1:]}" if found.startswith("_") else found
