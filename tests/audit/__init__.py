"""The audit chain: bytes, attacks, checkpoints, anchor, evidence file."""
