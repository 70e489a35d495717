"""Providers by the name that a submission gives: a configured instance, else a contract file.

Job: apply `[providers.NAME]` to the contract that it names. Must not know: what a contract means, stores.
Source: design.md "Origins"; spec K3, H2, T8.
"""

from __future__ import annotations

from collections.abc import Mapping

from pollcore.adapters.config import Instance
from pollcore.adapters.contract_files import ContractFiles, Found
from pollcore.contract import Contract, instance
from pollcore.contract.near import did_you_mean
from pollcore.facts import NotFound


class Providers:
    """Contracts with instance settings applied. An instance's name wins over a contract's."""

    def __init__(self, files: ContractFiles, instances: Mapping[str, Instance]) -> None:
        self.files = files
        self._instances = instances

    def find(self, name: str) -> Contract:
        """Raises NotFound with near names, ContractError, Refused (instance settings that do not fit)."""
        settings = self._instances.get(name)
        if settings is None:
            return self._contract(name)
        return instance(
            self.files.load(settings.contract),
            base_url=settings.base_url,
            allow_http=settings.allow_http,
            account=settings.account,
            urls=settings.urls,
        )

    def _contract(self, name: str) -> Contract:
        try:
            return self.files.load(name)
        except NotFound:
            hint = did_you_mean(name, self.names())
            raise NotFound(f"no provider {name!r}{hint}; `pollconsole provider list` shows all") from None

    def names(self) -> list[str]:
        """Every name that can be submitted to."""
        return sorted({*self._instances, *self.files.names()})

    def listing(self) -> list[Found]:
        """Contract files with where they are from and whether they can be used."""
        return self.files.listing()
