"""A device that joins by a link or a file, and one that only searches."""

from __future__ import annotations

import json

import pytest

from searchblend.cli.main import main
from searchblend.core.documents import encode
from searchblend.core.errors import UsageError
from searchblend.device.agent import DeviceAgent
from searchblend.wire.enrolment import LONGEST, EnrolmentDocument, enrolment_link, read_enrolment

KEY, OTHER = "04" + "5a" * 64, "04" + "0c" * 64
DOCUMENT = EnrolmentDocument("https://lists.example", "00" * 16, (KEY,), (OTHER,), "Mine.", has_urls=False)
LINK = enrolment_link("https://lists.example/enrol/x", DOCUMENT)


@pytest.mark.parametrize("form", ["link", "file"])
def test_the_command_takes_a_link_or_a_file(tmp_path, capsys, form):
    (tmp_path / "enrolment.json").write_text(json.dumps(encode(DOCUMENT)))
    given = LINK if form == "link" else str(tmp_path / "enrolment.json")
    state = ["--state", str(tmp_path / "device")]
    assert main(["device", "enrol", given, *state]) == 0
    assert "https://lists.example" in capsys.readouterr().out
    with DeviceAgent.open(tmp_path / "device") as agent:
        enrolment = agent.export().enrolment
    assert (enrolment.task, enrolment.has_urls, enrolment.consent) == (DOCUMENT.task, False, "Mine.")
    assert (list(enrolment.keys.values()), list(enrolment.curators.values())) == ([KEY], [OTHER])
    assert main(["device", "consent", "opt-in", *state]) == 0
    assert "Mine." in capsys.readouterr().out


def test_what_is_wrong_is_named(tmp_path, capsys):
    (tmp_path / "enrolment.json").write_text(json.dumps({**encode(DOCUMENT), "note": "x"}))
    state = ["--state", str(tmp_path / "device")]
    for arguments, said in (
        ([str(tmp_path / "enrolment.json")], "note"),
        ([str(tmp_path / "absent.json")], "absent.json"),
        ([LINK[:-30]], "enrolment"),
        ([LINK, "--key", KEY], "leave the other options out"),
        ([], "--server, --task and --key"),
    ):
        assert main(["device", "enrol", *arguments, *state]) != 0
        assert said in capsys.readouterr().err


def test_a_text_that_is_too_long_is_not_read():
    with pytest.raises(UsageError, match="enrolment"):
        read_enrolment(json.dumps({**encode(DOCUMENT), "consent": "a" * LONGEST}))


def test_a_device_that_only_searches_keeps_and_gives_nothing(tmp_path):
    with DeviceAgent.open(tmp_path / "device", create=True) as agent:
        agent.enrol_with(DOCUMENT)
        agent.consent("search")
        assert agent.status().mode == "search"
        with pytest.raises(UsageError, match="no consent"):
            agent.record("weather")
