"""Sign-in at an organisation's issuer: OpenID Connect, authorization code with PKCE, roles from a claim.

A sign-in is begun once and ended once. What it was begun with (state, nonce, PKCE verifier, where to go afterwards)
stays in this process, under a random string that one browser has in a cookie; it is taken out by the first answer that
comes with that cookie, whatever the answer says. The identity token must be of this issuer, for this client, of this
sign-in and in its time; Authlib and joserfc check it. Of the person we keep what ``store/tokens.py`` says, and no
token.

The audit log names people by a claim, after ``sso:``. Their role comes with each sign-in and is held no longer than a
session; to end sessions at once there is ``searchblend keys revoke sso:NAME``.
"""

from __future__ import annotations

import hmac
import secrets
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.files.durable import read_named_secret
from searchblend.service.api.answers import Refusal
from searchblend.service.settings import ServeSettings
from searchblend.store.tokens import ROLES, SSO_USER, Admin
from searchblend.wire.addresses import check_secure

if TYPE_CHECKING:
    from authlib.integrations.httpx_client import AsyncOAuth2Client

CALLBACK: Final = "/console/sign-in/sso/callback"
BEGUN_SECONDS: Final = 600
"""how long a person may take at the issuer"""
_MOST_BEGUN: Final = 10_000
_KNOWN_SECONDS: Final = 3600.0
"""how long the issuer's addresses are remembered"""
_ISSUER_SECONDS: Final = 10.0
_LEEWAY: Final = 30
"""seconds that the issuer's clock may be off"""
_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""signatures by a key of the issuer's alone: none by a secret that others share, and no unsigned token"""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_LONGEST_NAME: Final = 96


class SignInFailed(Refusal):
    """What came back from the issuer does not belong to a sign-in of this browser. The message names no one."""

    title: Final = "The sign-in failed"

    def __init__(self, detail: str) -> None:
        super().__init__("forbidden", f"{detail}; sign in again")


@dataclass(frozen=True)
class _Begun:
    """A sign-in between its two requests."""

    state: str
    nonce: str
    verifier: str
    onward: str
    ends: float


@dataclass(frozen=True)
class Identity:
    """For whom the issuer vouches."""

    subject: str
    admin: Admin
    onward: str
    """the page that they wanted"""


@dataclass(frozen=True)
class _Issuer:
    """What the issuer says about itself, and until when that is remembered."""

    document: JsonObject
    keys: Any
    until: float


class SingleSignOn:
    """The client of one issuer."""

    def __init__(self, settings: ServeSettings, now: Callable[[], int]) -> None:
        """``now``: by which clock identity tokens expire."""
        check_secure("oidc_issuer", settings.oidc_issuer)
        check_secure("console_address", settings.console_address)
        if not settings.oidc_client:
            raise InvalidParameter("oidc_client", "expected with an issuer: the id under which it knows the console")
        self._settings, self._now, self.issuer = settings, now, settings.oidc_issuer
        self._roles = roles_of(settings.oidc_roles)
        self._secret = _secret_of(settings.oidc_secret_file)
        self._redirect = settings.console_address.rstrip("/") + CALLBACK
        self._begun: OrderedDict[str, _Begun] = OrderedDict()
        self._issuer: _Issuer | None = None
        self._tls = ssl.create_default_context()
        _require_library()

    async def begin(self, onward: str) -> tuple[str, str]:
        """Where to send the browser, and what its cookie must hold when it comes back."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        begun = _Begun(state, nonce, verifier, onward, time.monotonic() + BEGUN_SECONDS)
        async with self._client() as client:
            issuer = await self._known_issuer(client)
            address, _ = client.create_authorization_url(
                issuer.document["authorization_endpoint"],
                state=begun.state,
                nonce=begun.nonce,
                code_verifier=begun.verifier,
            )
        secret = secrets.token_urlsafe(32)
        while len(self._begun) >= _MOST_BEGUN:
            self._begun.popitem(last=False)
        self._begun[secret] = begun
        return str(address), secret

    async def finish(self, secret: str, answer: Mapping[str, str]) -> Identity:
        """Who came back, or ``SignInFailed``. ``answer``: the parameters of the issuer's redirect."""
        begun = self._begun.pop(secret, None)
        if begun is None or begun.ends < time.monotonic():
            raise SignInFailed("it was not begun in this browser, or is over")
        if not hmac.compare_digest(begun.state.encode(), answer.get("state", "").encode()):
            raise SignInFailed("it belongs to another one")
        if answer.get("iss", self._settings.oidc_issuer) != self._settings.oidc_issuer:
            raise SignInFailed("another issuer has answered")
        if "code" not in answer:
            raise SignInFailed("the issuer did not agree")
        claims = await self._claims(answer["code"], begun)
        return Identity(str(claims["sub"]), self._admin_of(claims), begun.onward)

    async def _claims(self, code: str, begun: _Begun) -> JsonObject:
        """The claims of the identity token that this code is worth; whatever is wrong with it ends the sign-in."""
        from authlib.common.errors import AuthlibBaseError
        from httpx2 import HTTPError
        from joserfc.errors import JoseError

        try:
            async with self._client() as client:
                issuer = await self._known_issuer(client)
                token = await client.fetch_token(
                    issuer.document["token_endpoint"],
                    code=code,
                    code_verifier=begun.verifier,
                    grant_type="authorization_code",
                )
                return await self._verified(client, issuer, token, begun.nonce)
        except (AuthlibBaseError, JoseError, HTTPError, ValueError, KeyError) as error:
            raise SignInFailed(f"the issuer's answer was refused ({type(error).__name__})") from error

    async def _verified(self, client: AsyncOAuth2Client, issuer: _Issuer, token: JsonObject, nonce: str) -> JsonObject:
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError

        try:
            decoded = jwt.decode(token["id_token"], issuer.keys, algorithms=list(_ALGORITHMS))
        except InvalidKeyIdError:  # signed by a key that the issuer has made since
            self._issuer = None
            issuer = await self._known_issuer(client)
            decoded = jwt.decode(token["id_token"], issuer.keys, algorithms=list(_ALGORITHMS))
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={
                "iss": {"essential": True, "value": self._settings.oidc_issuer},
                "aud": {"essential": True, "value": self._settings.oidc_client},
            },
            params={
                "nonce": nonce,
                "client_id": self._settings.oidc_client,
                "access_token": token.get("access_token"),
            },
        )
        claims.validate(now=self._now(), leeway=_LEEWAY)
        return dict(claims)

    def _admin_of(self, claims: JsonObject) -> Admin:
        name = claims.get(self._settings.oidc_name)
        if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
            raise SignInFailed(f"the issuer states no usable {self._settings.oidc_name}")
        stated = claims.get(self._settings.oidc_claim, [])
        groups = {stated} if isinstance(stated, str) else set(map(str, stated)) if isinstance(stated, list) else set()
        role = next((role for group, role in self._roles if group in groups), None)
        if role is None:
            raise SignInFailed("this account has no role here; the issuer's administrator gives one")
        return Admin(f"{SSO_USER}{name}", role)

    async def _known_issuer(self, client: AsyncOAuth2Client) -> _Issuer:
        """Its addresses and keys, fetched anew every hour."""
        from httpx2 import HTTPError
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        if self._issuer is not None and self._issuer.until > time.monotonic():
            return self._issuer
        try:
            document = await _fetched(client, _discovery_of(self._settings.oidc_issuer))
            if document.get("issuer") != self._settings.oidc_issuer:
                raise ValueError("issuer")
            for name in _ENDPOINTS:
                check_secure(name, str(document[name]))
            keys = KeySet.import_key_set(await _fetched(client, document["jwks_uri"]))  # type: ignore[arg-type]
        except (HTTPError, JoseError, InvalidParameter, ValueError, KeyError) as error:
            raise SignInFailed(f"the issuer cannot be asked ({type(error).__name__})") from error
        self._issuer = _Issuer(document, keys, time.monotonic() + _KNOWN_SECONDS)
        return self._issuer

    def _client(self) -> AsyncOAuth2Client:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        return AsyncOAuth2Client(
            self._settings.oidc_client,
            self._secret or None,
            scope=self._settings.oidc_scope,
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=_ISSUER_SECONDS,
            follow_redirects=False,
            verify=self._tls,
        )


async def _fetched(client: AsyncOAuth2Client, address: str) -> JsonObject:
    answer = await client.request("GET", address, withhold_token=True)
    answer.raise_for_status()
    document = answer.json()
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    return document


def _discovery_of(issuer: str) -> str:
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def roles_of(setting: str) -> list[tuple[str, str]]:
    """Values of the claim with the role that each gives, in the order in which they are looked for."""
    pairs = []
    for part in filter(None, map(str.strip, setting.split(","))):
        group, _, role = (word.strip() for word in part.rpartition("="))
        if not group or role not in ROLES:
            raise InvalidParameter("oidc_roles", f"expected value=role, …; a role is one of {', '.join(ROLES)}")
        pairs.append((group, role))
    if not pairs:
        raise InvalidParameter("oidc_roles", "expected with an issuer: which values of the claim give which role")
    return pairs


def _secret_of(file: str) -> str:
    if not file:
        return ""  # a public client: PKCE alone
    try:
        return read_named_secret(file).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: expected the client's secret as text") from error


def _require_library() -> None:
    try:
        import authlib.integrations.httpx_client  # noqa: F401
    except ImportError as error:
        raise UsageError("oidc_issuer: expected the extra oidc: pip install 'searchblend[oidc]'") from error
