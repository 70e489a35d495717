"""A secret that knows where it may go, and the texts that give it away.

Job: carry origins (K3) and search patterns (K4) with the secret, so that the transport can check both by itself.
Must not know: keyrings, sockets.
"""

from __future__ import annotations

from pollcore.adapters.scrub import Scrubber
from pollcore.facts import Secret

SEPARATOR = "\n"
"""Between the values of a credential that fills two headers: one line each, in the order of the names."""


class PinnedSecret(Secret):
    """A secret with the origins (`scheme://host:port`) that it was entered for.

    *beside*: what it was bought with; an answer to it is scrubbed of that, too.
    """

    __slots__ = ("__weakref__", "_beside", "_scrubber", "origins")

    def __init__(self, value: str, origins: tuple[str, ...], beside: tuple[Secret, ...] = ()) -> None:
        super().__init__(value)
        self.origins = origins
        self._beside = beside
        self._scrubber: Scrubber | None = None

    @property
    def scrubber(self) -> Scrubber:
        """Made once: building the encodings costs more than searching a body for them."""
        if self._scrubber is None:
            texts = [self.reveal(), *(secret.reveal() for secret in self._beside)]
            self._scrubber = Scrubber("\n".join(texts))
        return self._scrubber


def scrubber_of(secret: Secret) -> Scrubber:
    """The scrubber for *secret*, kept with it where it can be."""
    return secret.scrubber if isinstance(secret, PinnedSecret) else Scrubber(secret.reveal())
