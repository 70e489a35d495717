"""What the core needs from outside, as protocols, and the records that pass between. Fakes pass the same suites.

Job: name the calls, their units, their promises, one file a neighbour. Must not know: any library that fulfils them.
"""

from pollcore.ports.audit import AuditExtension, AuditLink, AuditLog, AuditTip, Granting, MakeExtension, Sealer
from pollcore.ports.brakes import UNPROVED, Cooldown, Denial, OriginState, Pause
from pollcore.ports.claim import Claim, Claimed
from pollcore.ports.clock import Chance, Clock
from pollcore.ports.credentials import CredentialAsked, CredentialInfo, CredentialModes, Credentials, CredentialValue
from pollcore.ports.store import Store
from pollcore.ports.store_reads import ContractKnown, Filter
from pollcore.ports.store_writes import Window
from pollcore.ports.transport import Transport
from pollcore.ports.turn import Coming, Turn, TurnOutcome, Worker
from pollcore.ports.write import Stored, Write

__all__ = [
    "AuditExtension",
    "AuditLink",
    "AuditLog",
    "AuditTip",
    "Chance",
    "Claim",
    "Claimed",
    "Clock",
    "Coming",
    "ContractKnown",
    "Cooldown",
    "CredentialAsked",
    "CredentialInfo",
    "CredentialModes",
    "CredentialValue",
    "Credentials",
    "Denial",
    "Filter",
    "Granting",
    "MakeExtension",
    "OriginState",
    "Pause",
    "Sealer",
    "Store",
    "Stored",
    "Transport",
    "Turn",
    "TurnOutcome",
    "UNPROVED",
    "Window",
    "Worker",
    "Write",
]
