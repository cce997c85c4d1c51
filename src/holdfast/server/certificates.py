"""The certificates of a PEM file."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.common import rest_options
from holdfast.errors import ConfigurationError

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def certificates_in(path: str) -> str:
    """The certificates of a file, and nothing else that it holds: a private key may stand beside them."""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"The certificates {path} cannot be read: {error}; set '{rest_options.TLS_AUTHORITY.key}' or "
            f"'{rest_options.TLS_CERTIFICATE.key}' to a PEM file"
        ) from error
    return "\n".join(_CERTIFICATE.findall(text)) + "\n"
