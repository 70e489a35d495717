"""Signs a request with AWS Signature Version 4, through botocore (extra `aws`).

Job: the headers that prove who asks, from one head as it will be sent. Must not know: sockets, keyrings, contracts.
Source: spec K5; the signature covers method, path, query, body, host, date and every header that is there.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import extra_missing

WITHOUT: Final = f"requests cannot be signed: {extra_missing('aws', 'botocore')}"


class CannotSign(Exception):
    """The text is ours: no secret, no address."""


def signed_headers(
    secret: str, service: str, region: str, method: str, url: str, headers: list[tuple[str, str]], body: bytes
) -> list[tuple[str, str]]:
    """Headers to add: `authorization`, `x-amz-date`, and `x-amz-security-token` where the credential has a session.

    Args:
        secret: `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, or with `:SESSION_TOKEN`.
        url: Exactly as it is sent, path and query percent-encoded.
        headers: What is signed along with the host: the contract's own.

    Raises:
        CannotSign: botocore is not installed, or the secret has another form.
    """
    parts = secret.split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise CannotSign("the stored secret is not ACCESS_KEY_ID:SECRET_ACCESS_KEY; set it anew")
    try:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
    except ImportError:
        raise CannotSign(WITHOUT) from None
    before = {name.lower() for name, _ in headers}
    request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
    SigV4Auth(Credentials(*parts), service, region).add_auth(request)
    return [(name, value) for name, value in request.headers.items() if name.lower() not in before]
