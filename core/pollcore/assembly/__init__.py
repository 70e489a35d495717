"""Which adapter is used for which port: `open_core` puts one core together from a home folder.

Job: the one way in. Must not know: what any of the parts does. `core` has the parts, `home_keys` and `audit_side` what
must happen around a store's life, `outside` what is told beside a loop.
"""

from pollcore.assembly.core import Core, open_core

__all__ = ["Core", "open_core"]
