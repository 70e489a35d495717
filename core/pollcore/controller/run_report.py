"""What one run of the loop did, for whoever started it.

Job: four counts. Must not know: what they are used for.
"""

from __future__ import annotations

import msgspec


class RunReport(msgspec.Struct):
    """What one run did."""

    turns: int = 0
    sent: int = 0
    """Requests; one for many operations is one (R39)."""
    recorded: int = 0
    refused: int = 0
    """Results of a late owner: they changed nothing (O2)."""
