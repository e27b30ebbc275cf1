"""Somebody who uses the console without a browser: cookies, forms and nothing that a script would add."""

from __future__ import annotations

import html
import re

from searchblend.service.console.sessions import COOKIE, form_token


class Person:
    """Somebody with a browser that keeps cookies and sends forms."""

    def __init__(self, http, role: str) -> None:
        self.http, self.client, self.role = http, http.client, role
        self.client.base_url = "https://testserver"
        self.sign_in()

    def sign_in(self, token: str | None = None):
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
    def form_of(answer) -> str:
        return html.unescape(re.search(r'name="form" value="([^"]+)"', answer.text)[1])

    def get(self, path: str, **arguments):
        self._mine()
        return self.client.get(path, follow_redirects=False, **arguments)

    def post(self, path: str, data: dict | None = None, **arguments):
        self._mine()
        form = form_token(self.client.cookies.get(COOKIE, domain=None) or "")
        return self.client.post(path, data={"form": form, **(data or {})}, follow_redirects=False, **arguments)

    def _mine(self) -> None:
        self.client.cookies.clear()
        for name, value in self.cookies.items():
            self.client.cookies.set(name, value)
