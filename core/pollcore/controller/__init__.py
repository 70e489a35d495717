"""The order of the steps of one poll and of the loop. It decides nothing itself."""

from pollcore.controller.loop import Controller
from pollcore.controller.prepare import Caps

__all__ = ["Caps", "Controller"]
