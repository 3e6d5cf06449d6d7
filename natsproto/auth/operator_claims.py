"""The claims of operators, which sign themselves."""

from __future__ import annotations

from . import claim_checks as checks
from . import nkeys
from .claims import Claims

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class OperatorClaims(Claims):
    """The claims of an operator, which it signs itself.

    subject         the public key of the operator
    signing_keys    public keys that may also sign accounts
    system_account  the public key of the system account
    strict          accounts must be signed by a signing key, and not by the operator's own key
    """

    TYPE: str = "operator"
    SUBJECT: str = nkeys.OPERATOR
    ISSUERS: str = nkeys.OPERATOR

    def __init__(
        self,
        subject: str,
        *,
        name: str = "",
        signing_keys: Sequence[str] = (),
        system_account: str = "",
        account_server_url: str = "",
        service_urls: Sequence[str] = (),
        strict: bool = False,
        audience: str = "",
        expires: float = 0,
        not_before: float = 0,
        tags: Sequence[str] = (),
    ) -> None:
        super().__init__(subject, name, audience, expires, not_before, tags)
        self.signing_keys: Sequence[str] = signing_keys
        self.system_account: str = system_account
        self.account_server_url: str = account_server_url
        self.service_urls: Sequence[str] = service_urls
        self.strict: bool = strict
        self.to_json()

    def body(self) -> dict[str, Any]:
        """Return the fields of an operator; raise InvalidValue."""
        account = checks.check_text("system_account", self.system_account)
        urls = checks.check_list("service_urls", self.service_urls)
        fields: dict[str, Any] = {
            "signing_keys": checks.check_nkeys("signing_keys", self.signing_keys, nkeys.OPERATOR),
            "system_account": account
            and checks.check_nkey("system_account", account, nkeys.ACCOUNT),
            "account_server_url": checks.check_text("account_server_url", self.account_server_url),
            "operator_service_urls": [checks.check_text("service URL", each) for each in urls],
            "strict_signing_key_usage": checks.check_flag("strict", self.strict),
        }
        return {name: fields[name] for name in fields if fields[name]}

    @classmethod
    def fields_of(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of an operator from those of a JWT, and return them."""
        return {
            "signing_keys": body.pop("signing_keys", []),
            "system_account": body.pop("system_account", ""),
            "account_server_url": body.pop("account_server_url", ""),
            "service_urls": body.pop("operator_service_urls", []),
            "strict": body.pop("strict_signing_key_usage", False),
        }
