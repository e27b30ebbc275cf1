"""A real OpenID provider in a process of its own, and a browser that signs people in there."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

CONSOLE = "https://testserver"
REDIRECT = f"{CONSOLE}/console/sign-in/sso/callback"
_SCRIPT = Path(__file__).with_name("oidc_issuer.mjs")
_MOST_STEPS = 20


class OidcIssuer:
    """The provider's address, and what a person does there with a browser of their own."""

    def __init__(self, address: str) -> None:
        self.address = address

    def sign_in(self, where: str, name: str) -> dict[str, str]:
        """Follow an authorization request through the provider's pages; the parameters of its redirect back."""
        with httpx2.Client(timeout=240, verify=False) as browser:  # no TLS here, and reading the authorities takes time
            answer = browser.get(where)
            for _ in range(_MOST_STEPS):
                onward = answer.headers.get("location", "")
                if onward.startswith(REDIRECT):
                    return {key: values[0] for key, values in parse_qs(urlsplit(onward).query).items()}
                if onward:
                    answer = browser.get(urljoin(str(answer.url), onward))
                    continue
                form = re.search(r'action="([^"]+)"', answer.text)
                prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
                assert form is not None, answer.text
                assert prompt is not None, answer.text
                data = {"prompt": prompt[1], "login": name, "password": "any"}
                answer = browser.post(urljoin(str(answer.url), form[1]), data=data)
        raise AssertionError("the provider never came back")

    def swap(self, token: str) -> None:
        """From now on the token endpoint gives out this identity token; the empty one ends it."""
        httpx2.post(f"{self.address}/swap", params={"token": token}, timeout=240).raise_for_status()

    def token_of_another_client(self, name: str, nonce: str) -> str:
        """A genuine identity token, for a client that is not the console."""
        verifier = secrets.token_urlsafe(40)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        request = httpx2.URL(
            f"{self.address}/auth",
            params={
                "client_id": "other",
                "redirect_uri": REDIRECT,
                "response_type": "code",
                "scope": "openid profile",
                "nonce": nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            },
        )
        code = self.sign_in(str(request), name)["code"]
        answer = httpx2.post(
            f"{self.address}/token",
            data={
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": REDIRECT,
                "code_verifier": verifier,
            },
            auth=("other", "other-secret"),
            timeout=240,
        )
        return str(answer.json()["id_token"])


@contextlib.contextmanager
def oidc_issuer() -> Iterator[OidcIssuer]:
    """One for many tests: what they do there is kept in its memory, and ends with it."""
    with subprocess.Popen(
        ["node", str(_SCRIPT), REDIRECT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield OidcIssuer(process.stdout.readline().strip())
        finally:
            process.stdin.close()
            process.wait(240)
