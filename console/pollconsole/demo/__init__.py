"""`pollconsole demo`: everything that a console over misbehaving providers needs, and nothing that outlives it."""

from __future__ import annotations

from pollconsole.demo.approvals import GUIDE
from pollconsole.demo.headless import run_headless
from pollconsole.demo.setup import DemoSetup, start

__all__ = ["GUIDE", "DemoSetup", "run_headless", "start"]
