"""``searchblend device``: the device agent from a terminal."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from searchblend.cli.device_search import print_found
from searchblend.cli.tables import new_table, output, say
from searchblend.core.errors import InputError, UsageError
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import OFF, OPT_IN, TEXTS, text_digest
from searchblend.device.device_errors import DeviceError
from searchblend.device.rounds import Outcome


def run(options: argparse.Namespace) -> None:
    act = {
        "enrol": _enrol,
        "consent": _consent,
        "record": _record,
        "import": _import,
        "sync": _sync,
        "search": print_found,
        "status": _status,
        "show": _show,
        "pause": _pause,
        "resume": _resume,
        "erase": _erase,
        "leave": _leave,
        "export": _export,
    }[options.action]
    with DeviceAgent.open(options.state.expanduser(), create=options.action == "enrol") as agent:
        act(agent, options)


def _enrol(agent: DeviceAgent, options: argparse.Namespace) -> None:
    agent.enrol(
        options.server,
        options.task,
        options.key,
        code=options.code,
        has_urls=not options.no_urls,
        plain_http=options.plain_http,
        curators=options.curator_key,
    )
    mode = agent.status()["mode"]
    document = {"task": options.task, "server": options.server, "mode": mode}
    _print(document, f"Enrolled; the mode is {mode}. Next: searchblend device consent local", options)


def _consent(agent: DeviceAgent, options: argparse.Namespace) -> None:
    if options.text is not None and options.mode != OPT_IN:
        raise UsageError("--text: only opt-in has a text of the task's own")
    text = None if options.mode == OFF else _text(options)
    if text is not None and not options.agree:
        document = {"mode": options.mode, "text": text, "sha256": text_digest(text), "agreed": False}
        _print(document, f"{text}\n\nNothing was changed. To agree to this text, add --agree.", options)
        return
    withdrawn = agent.consent(options.mode, text)
    said = {OFF: "Consent is withdrawn and all searches are erased."}.get(
        options.mode, f"The mode is {options.mode} now."
    )
    document = {"mode": options.mode, "sha256": text_digest(text) if text else None, "agreed": text is not None}
    _print_withdrawn(document, said, withdrawn, options)


def _text(options: argparse.Namespace) -> str:
    if options.text is None:
        return TEXTS[options.mode]
    try:
        return str(Path(options.text).read_text(encoding="utf-8")).rstrip("\n")
    except (OSError, ValueError) as error:
        raise InputError(options.text, f"cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None


def _record(agent: DeviceAgent, options: argparse.Namespace) -> None:
    found = agent.record(options.query, options.url)
    said = "Kept on this computer." if found.kept else f"Not kept: {found.reason}."
    _print({"kept": found.kept, "reason": found.reason}, said, options)


def _import(agent: DeviceAgent, options: argparse.Namespace) -> None:
    counts = agent.import_searches(options.file)
    lines = [f"{name}: {n}" for name, n in sorted(counts.items(), key=lambda item: (item[0] != "kept", item[0]))]
    _print(counts, "\n".join(lines) or "The file is empty.", options)


def _sync(agent: DeviceAgent, options: argparse.Namespace) -> None:
    outcome = agent.sync(immediately=options.now)
    if options.json:
        _print(outcome.as_json(), "", options)
    elif outcome.ok:
        say(outcome.text[0].upper() + outcome.text[1:] + ".")
    if outcome.pack and not options.json:
        say(f"Local-search pack: {outcome.pack}.")
    if not outcome.ok:
        raise DeviceError(outcome.text)


def _status(agent: DeviceAgent, options: argparse.Namespace) -> None:
    found = agent.status()
    if options.json:
        _print(found, "", options)
        return
    budget, last = found.pop("budget"), found.pop("last")
    for name, value in found.items():
        say(f"{name.replace('_', ' ')}: {_word(value)}")
    say(f"ε in {budget['window_days']} days: {budget['window_epsilon']:g}, {budget['window_epsilon_left']:g} left")
    say(f"ε in all: {budget['lifetime_epsilon']:g}, {budget['lifetime_epsilon_left']:g} left")
    if last:
        say(f"last sync ({_time(last['at'])}): {last['text']}")


def _show(agent: DeviceAgent, options: argparse.Namespace) -> None:
    rows = agent.sent()
    if options.json:
        _print(rows, "", options)
        return
    if not rows:
        say("Nothing was ever sent.")
        return
    table = new_table("Every report of this device. What was true never left it")
    for name in ("round", "group", "state", "true", "said", "ε", "bytes", "when"):
        table.add_column(name, justify="right" if name in ("round", "ε", "bytes") else "left")
    for row in rows:
        table.add_row(
            str(row["round"]),
            row["group"],
            row["state"],
            _pairs(row["true"]),
            "\n".join(_said(part) for part in row["said"]) if row["said"] else "erased",
            row["epsilon"],
            str(len(row["bytes"]) // 2) if row["bytes"] else "–",
            _time(row["made_at"]),
        )
    output.print(table)


def _pause(agent: DeviceAgent, options: argparse.Namespace) -> None:
    agent.pause()
    _print({"paused": True}, "Paused: nothing is kept or sent.", options)


def _resume(agent: DeviceAgent, options: argparse.Namespace) -> None:
    agent.resume()
    _print({"paused": False}, "Going on.", options)


def _erase(agent: DeviceAgent, options: argparse.Namespace) -> None:
    agent.erase()
    _print({"erased": True}, "All searches and what was said about them are erased; the ledger stays.", options)


def _leave(agent: DeviceAgent, options: argparse.Namespace) -> None:
    withdrawn = agent.leave()
    is_left = agent.status()["task"] is None
    said = (
        "Left the task; everything but the ledger is erased." if is_left else "All is erased, but the task is not left."
    )
    _print_withdrawn({"left": is_left}, said, withdrawn, options)


def _export(agent: DeviceAgent, options: argparse.Namespace) -> None:
    options.json = True
    _print(agent.export(), "", options)


def _print_withdrawn(
    document: dict[str, Any], said: str, withdrawn: Outcome | None, options: argparse.Namespace
) -> None:
    if withdrawn is not None:
        document["contribution"] = withdrawn.status
        said += f" {withdrawn.text[0].upper()}{withdrawn.text[1:]}."
    _print(document, said, options)
    if withdrawn is not None and not withdrawn.ok:
        raise DeviceError(withdrawn.text)


def _print(document: Any, said: str, options: argparse.Namespace) -> None:
    if options.json:
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    else:
        say(said)


def _said(part: dict[str, Any]) -> str:
    return _pairs(part["items"]) if part["items"] else f"none of the {part['about']} (the sink)"


def _pairs(pairs: list[list[str | None]] | None) -> str:
    if pairs is None:
        return "erased"
    return ", ".join(" → ".join("⋆" if text is None else text for text in pair) for pair in pairs)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
