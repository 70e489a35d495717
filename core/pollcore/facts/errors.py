"""Errors of ours that cross a floor.

Job: say what, whose side, which limit or key, and the way out, in one sentence that is safe to print.
Must not know: exit codes, screens, provider bytes (callers pass only text made harmless).
"""

from __future__ import annotations


class PollconsoleError(Exception):
    """Base of every error that is told to people."""


class Refused(PollconsoleError):
    """Input that is not accepted: bad value, over a ceiling, a duplicate. Exit code 2."""

    def __init__(self, message: str, *, code: str = "refused", **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class ContractError(Refused):
    """A contract that cannot be used: `acme.toml: states.waiting: "Running" is also in states.failed`."""

    def __init__(self, message: str, *, line: int | None = None, key: str | None = None) -> None:
        super().__init__(message, code="contract", line=line, key=key)
        self.line = line
        self.key = key


class Stale(PollconsoleError):
    """What was decided on has moved since; nothing was done. Draw anew, decide anew (G4, E7)."""


class NotFound(Refused):
    """No operation, contract or credential of that name; the message lists near names."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="not_found")


class StoreUnusable(PollconsoleError):
    """The store cannot commit (full, locked, read-only, damaged, newer schema): no request goes out (O6)."""


class SealedUnreadable(PollconsoleError):
    """A sealed column cannot be opened: the reading key is not at hand."""


class CredentialUnavailable(PollconsoleError):
    """A secret cannot be read now; *detail* is a StopDetail value."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


def extra_missing(extra: str, package: str) -> str:
    """What to do where the library of an optional part is not there; it holds however the program was installed.

    *package*: the library's name where it is published; *extra*: the name of ours that brings it.
    """
    return (
        f"the extra {extra!r} is not installed: pip install {package}, or install pollconsole with its extra "
        f"[{extra}], into the environment that it runs in"
    )


class CredentialPending(CredentialUnavailable):
    """Its token is being bought right now: who serves others meanwhile looks again a little later."""
