"""A user of the console without a browser: cookies, forms and nothing that a script would add."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Protocol

import httpx2
from starlette.testclient import TestClient

from searchblend.service.console.sign_in import COOKIE
from searchblend.service.console.visit import form_token


class SignInService(Protocol):
    """A service behind a test client, with a token for each role."""

    client: TestClient
    tokens: dict[str, str]


class Person:
    """Keeps cookies and sends forms, as a browser would."""

    def __init__(self, http: SignInService, role: str) -> None:
        self.http, self.client, self.role = http, http.client, role
        self.client.base_url = "https://testserver"
        self.sign_in()

    def sign_in(self, token: str | None = None) -> httpx2.Response:
        self.client.cookies.clear()
        form = self.form_of(self.client.get("/console/sign-in"))
        answer = self.client.post(
            "/console/sign-in",
            data={"form": form, "token": token or self.http.tokens[self.role], "next": "/console"},
            follow_redirects=False,
        )
        self.cookies = dict(self.client.cookies)
        return answer

    @staticmethod
    def form_of(answer: httpx2.Response) -> str:
        field = re.search(r'name="form" value="([^"]+)"', answer.text)
        assert field, "the page has no form"
        return html.unescape(field[1])

    def get(self, path: str, params: Mapping[str, str] | None = None) -> httpx2.Response:
        self._mine()
        return self.client.get(path, params=params, follow_redirects=False)

    def post(
        self, path: str, data: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        self._mine()
        form = form_token(self.client.cookies.get(COOKIE, domain=None) or "")
        return self.client.post(path, data={"form": form, **(data or {})}, headers=headers, follow_redirects=False)

    def confirm(self, path: str, data: Mapping[str, str] | None = None) -> httpx2.Response:
        """The form, and the same once more with the yes that the page in between asks for."""
        return self.post(path, {**(data or {}), "sure": "yes"})

    def _mine(self) -> None:
        self.client.cookies.clear()
        for name, value in self.cookies.items():
            self.client.cookies.set(name, value)
