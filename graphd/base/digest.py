"""SHA-256 without hashlib, which loads a cryptographic library for the same number: a tenth of a byte pipe's start."""

from __future__ import annotations

import sys


def sha256_hex(content: bytes) -> str:
    """The digest in hexadecimal."""
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256  # type: ignore[import-not-found]  # not in typeshed
    except ImportError:
        from hashlib import sha256
    return str(sha256(content).hexdigest())
