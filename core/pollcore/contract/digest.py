"""What identifies a contract as it is in force.

Job: one hash over text and instance settings (S7). Must not know: which settings there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec


def digest_of(text: str, settings: Mapping[str, Any]) -> str:
    """SHA-256 over the text and the instance settings (sorted JSON), as hex."""
    told = msgspec.json.encode(dict(settings), order="deterministic")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + told).hexdigest()
