"""What a service gives out to those who join: the page and the document say the same, and only what devices take."""

from __future__ import annotations

import html
import re

import pytest

from searchblend.core.documents import encode
from searchblend.service.enrolment import EnrolmentOffer
from searchblend.service.settings import ServeSettings
from searchblend.wire.enrolment import read_enrolment
from searchblend.wire.signing import SigningKey
from service_http import http_service

ADDRESS = "https://lists.example"


@pytest.fixture
def http(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as service:
        service.services.offer = EnrolmentOffer(ServeSettings(data_dir=str(tmp_path)), ADDRESS)
        yield service


def offer_of(http, **settings):
    http.services.offer = EnrolmentOffer(ServeSettings(data_dir=str(http.parts.folder), **settings), ADDRESS)


def test_the_page_and_the_document_say_the_same(http):
    spare = SigningKey.new().public_point.hex()
    offer_of(http, spare_key=spare)
    task = http.parts.task(consent="I am of age.", has_urls=False)
    given = http.client.get(f"/v1/tasks/{task.task}/enrolment")
    assert given.status_code == 200
    document = read_enrolment(given.text)
    own = [key.public_point.hex() for key in http.parts.signing_keys.all()]
    assert (document.server, document.task, document.keys) == (ADDRESS, task.task, (*own, spare))
    assert (document.consent, document.has_urls) == ("I am of age.", False)
    page = http.client.get(f"/enrol/{task.task}")
    assert page.status_code == 200
    [link] = re.findall(r"<textarea[^>]*>([^<]*)<", page.text)
    assert encode(read_enrolment(html.unescape(link))) == encode(document)
    assert html.unescape(link).startswith(f"{ADDRESS}/enrol/{task.task}#")


def test_nothing_is_given_out_for_a_task_that_is_unknown_or_was_stopped(http):
    task = http.parts.task()
    for path in (f"/v1/tasks/{'0' * 32}/enrolment", f"/enrol/{'0' * 32}"):
        assert http.client.get(path).status_code == 404
    http.parts.lifecycle.kill(task, actor="ann")
    for path in (f"/v1/tasks/{task.task}/enrolment", f"/enrol/{task.task}"):
        answer = http.client.get(path)
        assert (answer.status_code, "stopped for good" in answer.text) == (404, True)


@pytest.mark.parametrize("address", ["http://lists.example", "https://lists.example/", "https://[lists"])
def test_an_address_that_devices_refuse_is_not_given_out(http, address):
    http.services.offer = EnrolmentOffer(ServeSettings(data_dir=str(http.parts.folder)), address)
    answer = http.client.get(f"/v1/tasks/{http.parts.task().task}/enrolment")
    assert (answer.status_code, "no enrolment can be given out: server" in answer.text) == (404, True)


def test_a_role_without_signing_keys_gives_nothing_out(http):
    http.services.offer = None
    assert http.client.get(f"/enrol/{http.parts.task().task}").status_code == 404
