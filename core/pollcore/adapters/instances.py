"""Providers by the name that a submission gives: a configured instance, else a contract file.

Job: apply `[providers.NAME]` to the contract that it names. Must not know: what a contract means, stores.
Source: design.md "Origins"; spec K3, H2, T8.
"""

from __future__ import annotations

from pollcore.adapters.config import Config
from pollcore.adapters.contract_files import ContractFiles, Found
from pollcore.contract import Contract, instance
from pollcore.contract.near import did_you_mean
from pollcore.facts import NotFound, Refused


class Providers:
    """Contracts with instance settings applied. An instance's name wins over a contract's."""

    def __init__(self, files: ContractFiles, config: Config) -> None:
        self.files = files
        self._config = config

    def find(self, name: str) -> Contract:
        """Raises NotFound with near names, ContractError.

        Refused, with line and key in `config.toml`: code `config`, the instance names no contract; code `instance`,
        its settings do not fit the contract.
        """
        settings = self._config.providers.get(name)
        if settings is None:
            return self._contract(name)
        contract = self._of_instance(name, settings.contract)
        try:
            return instance(
                contract,
                base_url=settings.base_url,
                allow_http=settings.allow_http,
                account=settings.account,
                urls=settings.urls,
            )
        except Refused as error:
            key = str(error.details["key"])
            what = str(error).removeprefix(f"{contract.name}: {key}: ")
            said = f"{what} (contract {contract.name})"
            raise self._config.refused(("providers", name, *key.split(".", 1)), said, code=error.code) from None

    def _of_instance(self, name: str, contract: str) -> Contract:
        try:
            return self.files.load(contract)
        except NotFound:
            hint = did_you_mean(contract, self.files.names())
            what = f"no contract {contract!r}{hint}; 'pollconsole provider list' shows all"
            raise self._config.refused(("providers", name, "contract"), what) from None

    def _contract(self, name: str) -> Contract:
        try:
            return self.files.load(name)
        except NotFound:
            hint = did_you_mean(name, self.names())
            raise NotFound(f"no provider {name!r}{hint}; `pollconsole provider list` shows all") from None

    def names(self) -> list[str]:
        """Every name that can be submitted to."""
        return sorted({*self._config.providers, *self.files.names()})

    def listing(self) -> list[Found]:
        """Contract files with where they are from and whether they can be used."""
        return self.files.listing()
