"""Stolen, raced and home-made tokens: two collectors on one database, and an issuer that is asked by many at once."""

from __future__ import annotations

import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from attack_service import SECONDS
from databases import DATABASES, fresh_database
from issuer_parts import ask, running_issuer, token_for, token_request
from searchblend.service.clock import SystemClock
from searchblend.service.round_model import RoundNumbers
from searchblend.wire.blind_rsa import blind_sign
from searchblend.wire.tokens import (
    TokenKey,
    TokenRequest,
    challenge_digest,
    issuer_name,
    read_request,
    token_header,
)
from service_http import REPORT
from service_parts import ManualClock, Service, crowd, people
from service_process import ServerProcess, running

TOKENS, COPIES = 6, 8
LONG = {"client_seconds": 100_000, "optin_seconds": 100_000, "shred_seconds": 200_000}


@pytest.mark.parametrize("kind", DATABASES)
def test_a_token_that_is_raced_on_two_collectors_pays_for_one_report(kind, tmp_path):
    where, clock = fresh_database(kind, tmp_path), SystemClock()
    parts = Service.start(where, tmp_path, clock)
    with contextlib.ExitStack() as stack:
        issuer = stack.enter_context(running_issuer(tmp_path / "issuer", clock))
        task = parts.task(**LONG, token_issuer=issuer.address)
        parts.contribute(parts.open(task), crowd(seed=1))
        found, ann, terms = parts.head_list(task), issuer.account("ann"), issuer.terms()
        servers = [stack.enter_context(running(ServerProcess(tmp_path, where, "--role", "collector"))) for _ in "ab"]
        client = stack.enter_context(httpx2.Client(timeout=SECONDS))
        tokens = [token_for(ann, terms, found) for _ in range(TOKENS)]
        messages = parts.messages(found, people(TOKENS * COPIES, seed=2))
        path = f"/v1/tasks/{found.task}/rounds/{found.number}/reports"

        def send(n, token=None):
            headers = {**REPORT, "authorization": token_header(token or tokens[n % TOKENS])}
            return client.post(servers[n % 2].address + path, content=messages[n], headers=headers).status_code

        with ThreadPoolExecutor(COPIES) as threads:
            statuses = list(threads.map(send, range(len(messages))))
        assert Counter(statuses) == {200: TOKENS, 409: TOKENS * (COPIES - 1)}
        paid = [n % TOKENS for n, status in enumerate(statuses) if status == 200]
        assert sorted(paid) == list(range(TOKENS))
        own = rsa.generate_private_key(65537, 2048).private_numbers()
        key = TokenKey(own.public_numbers)
        request = TokenRequest.make(key, challenge_digest(issuer_name(issuer.address), bytes.fromhex(found.task), 1))
        home_made = request.token(blind_sign(read_request(request.request)[1], own), key)
        relabelled = home_made[:66] + TokenKey.of_text(terms.key).key_id + home_made[98:]
        assert [send(n, token) for n in (0, 1) for token in (home_made, relabelled)] == [401] * 4
        assert parts.store.reports.n_seen(found.key) == TOKENS
        assert RoundNumbers.read(parts.store, found).conservation.holds
    parts.store.close()


def test_no_one_gets_more_than_the_rate_by_asking_at_once(tmp_path):
    with running_issuer(tmp_path, ManualClock(), per_week=5) as issuer, ThreadPoolExecutor(12) as threads:
        ann, ben, terms = issuer.account("ann"), issuer.account("ben"), issuer.terms()
        requests = [token_request(terms, bytes(16).hex(), 1).request for _ in range(24)]
        answers = list(threads.map(lambda request: ask(ann, request), requests))
        assert Counter(status for status, _ in answers) == {200: 5, 429: 19}
        same = list(threads.map(lambda _: ask(ben, requests[0]), range(24)))
        assert len(set(same)) == 1
        assert same[0][0] == 200
        assert {name: account.issued for name, account in issuer.accounts().items()} == {"ann": 5, "ben": 1}
