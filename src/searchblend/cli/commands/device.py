"""``searchblend device``: the device agent from a terminal."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import Commands, add_actions, add_command, positive_int
from searchblend.cli.printing import new_table, print_json, print_line, print_table, word
from searchblend.core.documents import JsonObject, encode
from searchblend.core.errors import InputError, InvalidParameter, UsageError
from searchblend.device.device_errors import DeviceError

if TYPE_CHECKING:
    from searchblend.device.agent import DeviceAgent
    from searchblend.device.make_report import ReportedPart
    from searchblend.device.rounds import Outcome
    from searchblend.wire.enrolment import EnrolmentDocument

EXAMPLES = """\
examples:
  searchblend device enrol 'https://lists.example/enrol/…#…'
  searchblend device consent local --agree        after reading the text that `device consent local` shows
  searchblend device record 'weather' --url https://weather.example/today
  searchblend device sync                         take part in the current round, if there is one
  searchblend device show                         everything that was ever sent
"""
ENROL_EXAMPLES = """\
examples:
  searchblend device enrol 'https://lists.example/enrol/…#…'        the link that the operator gave out, in quotes
  searchblend device enrol enrolment.json --code CODE
  searchblend device enrol --server https://lists.example --task 0123456789abcdef0123456789abcdef --key 04…
  searchblend device enrol --server http://127.0.0.1:8470 --task 0123456789abcdef0123456789abcdef --key 04… --code CODE
"""
CONSENT_EXAMPLES = """\
examples:
  searchblend device consent local                     show the text, agree to nothing
  searchblend device consent local --agree             agree: randomized reports only
  searchblend device consent opt-in --agree --text consent.txt
  searchblend device consent opt-in --records 5        show the text for rounds that take up to 5 searches
  searchblend device consent search                    give nothing, only fetch and search packs
  searchblend device consent off                       stop, drop what waits, take back what can be taken back
"""
ACCOUNT_EXAMPLES = """\
examples:
  searchblend device account 'https://issuer.example#sbi_…'
"""
RECORD_EXAMPLES = """\
examples:
  searchblend device record 'weather' --url https://weather.example/today
  searchblend device record 'weather' --json
"""
IMPORT_EXAMPLES = """\
examples:
  searchblend device import searches.jsonl          lines of {"query": "…", "url": "…"}; all of them or none
"""
SYNC_EXAMPLES = """\
examples:
  searchblend device sync                           call it every hour or so; reports wait for a random time
  searchblend device sync --now --json              without the delay (whoever watches the network sees when you act)
"""
SEARCH_EXAMPLES = """\
examples:
  searchblend device search weather                 answered from the pack on this computer; nothing is sent
  searchblend device search wea --limit 5 --json
"""
_EXAMPLES_OF_OTHERS = """\
examples:
  searchblend device {action}
  searchblend device {action} --state ~/.searchblend --json
"""
_PLAIN = {
    "status": "mode, budget and the last round in a few lines",
    "show": "everything that was sent: what was true, what was said, what it cost",
    "pause": "keep and send nothing until resume",
    "resume": "go on after a pause",
    "erase": "forget all searches and what was said about them; the ledger stays",
    "leave": "withdraw, erase, and forget the task",
    "export": "all that is kept here as one JSON document",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    _add_enrol(actions)
    account = _action(actions, "account", "where to get the tokens that pay for reports", ACCOUNT_EXAMPLES)
    account.add_argument("link", metavar="LINK", help="the account's link, from the issuer's people")
    _add_consent(actions)
    record = _action(actions, "record", "keep one search on this computer", RECORD_EXAMPLES)
    record.add_argument("query", metavar="QUERY", help="what was searched")
    record.add_argument("--url", metavar="URL", help="the result that was chosen")
    import_ = _action(actions, "import", "keep the searches of a file of JSON lines", IMPORT_EXAMPLES)
    import_.add_argument("file", type=Path, metavar="FILE", help='lines of {"query": …, "url": …}')
    sync = _action(
        actions, "sync", "fetch the manifest and do what it asks, within this device's limits", SYNC_EXAMPLES
    )
    sync.add_argument("--now", action="store_true", help="send without the random delay")
    search = _action(actions, "search", "answers from the local pack, without a network", SEARCH_EXAMPLES)
    search.add_argument("query", metavar="QUERY", help="the words to look for")
    search.add_argument("--limit", type=positive_int, default=10, metavar="N", help="answers at the most (10)")
    for name, what in _PLAIN.items():
        _action(actions, name, what, _EXAMPLES_OF_OTHERS.format(action=name))


def _add_enrol(actions: Commands) -> None:
    parser = _action(actions, "enrol", "take part in a task; nothing is kept or sent before consent", ENROL_EXAMPLES)
    parser.add_argument(
        "enrolment", nargs="?", metavar="LINK|FILE", help="an enrolment link or file, in place of the values below"
    )
    parser.add_argument("--server", metavar="URL", help="the service's address")
    parser.add_argument("--task", metavar="HEX", help="the task: 32 hexadecimal digits")
    parser.add_argument("--key", action="append", metavar="HEX", help="a public signing key to pin; may be repeated")
    parser.add_argument(
        "--curator-key",
        action="append",
        default=[],
        metavar="HEX",
        help="a curator's public key to pin; may be repeated",
    )
    parser.add_argument(
        "--witness", action="append", default=[], metavar="HEX", help="a witness' public key; may be repeated"
    )
    parser.add_argument(
        "--least-witnesses", type=int, default=0, metavar="N", help="how many witnesses must have cosigned the log (0)"
    )
    parser.add_argument("--relay", default="", metavar="URL", help="a relay to ask instead, with sealed requests")
    parser.add_argument("--code", metavar="CODE", help="the enrolment code, for opt-in contributions")
    parser.add_argument("--no-urls", action="store_true", help="the task collects queries without results")
    parser.add_argument("--plain-http", action="store_true", help="allow http to another computer (not private)")


def _add_consent(actions: Commands) -> None:
    parser = _action(actions, "consent", "agree to a mode, or withdraw", CONSENT_EXAMPLES)
    parser.add_argument(
        "mode",
        choices=["off", "search", "local", "opt-in"],
        metavar="MODE",
        help="off, search (give nothing), local or opt-in",
    )
    parser.add_argument("--agree", action="store_true", help="agree to the text (without it, it is only shown)")
    parser.add_argument(
        "--records", type=positive_int, metavar="N", help="how many searches a round may take (local 1, opt-in 20)"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="the task's own words, for opt-in")


def _action(actions: Commands, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    parser = add_command(actions, name, what, examples)
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("~/.local/state/searchblend"),
        metavar="DIR",
        help="where this device keeps everything (~/.local/state/searchblend)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def run(options: argparse.Namespace) -> None:
    from searchblend.device.agent import DeviceAgent

    act = {
        "enrol": _enrol,
        "account": _account,
        "consent": _consent,
        "record": _record,
        "import": _import,
        "sync": _sync,
        "search": _search,
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
    by_hand = [options.server, options.task, options.key]
    if options.enrolment is not None:
        if any(by_hand) or options.curator_key or options.no_urls or options.plain_http or options.relay:
            raise UsageError(
                "a link or a file says all of the enrolment but --code and the witnesses: leave the other options out"
            )
        witnesses = {"witnesses": options.witness, "least_witnesses": options.least_witnesses}
        agent.enrol_with(_read_enrolment(options.enrolment), code=options.code, **witnesses)
    elif all(by_hand):
        agent.enrol(
            options.server,
            options.task,
            options.key,
            code=options.code,
            has_urls=not options.no_urls,
            plain_http=options.plain_http,
            curators=options.curator_key,
            witnesses=options.witness,
            least_witnesses=options.least_witnesses,
            relay=options.relay,
        )
    else:
        raise UsageError("expected an enrolment link or file, or --server, --task and --key")
    status = agent.status()
    document = {"task": status.task, "server": status.server, "mode": status.mode}
    said = f"Enrolled at {status.server}; the mode is {status.mode}. Next: searchblend device consent local"
    _print(document, said, options)


def _account(agent: DeviceAgent, options: argparse.Namespace) -> None:
    account = agent.set_account(options.link)
    _print({"issuer": account.issuer}, f"Reports are paid with tokens of {account.issuer}.", options)


def _read_enrolment(given: str) -> EnrolmentDocument:
    """Of a link, which has a #, or of a file."""
    from searchblend.wire.enrolment import read_enrolment

    if "#" in given:
        return read_enrolment(given)
    if given.startswith(("https://", "http://")):
        raise UsageError(f"{given}: not a whole enrolment link: what follows its # is missing; put it in quotes")
    try:
        return read_enrolment(Path(given).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(given, f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except InvalidParameter as error:
        raise InputError(given, str(error)) from error


def _consent(agent: DeviceAgent, options: argparse.Namespace) -> None:
    from searchblend.device.consent_texts import GIVING, OFF, OPT_IN, SEARCH, text_digest, usual_records

    options.records = options.records or usual_records(options.mode)
    if options.text is not None and options.mode != OPT_IN:
        raise UsageError("--text: only opt-in has a text of the task's own")
    text = _text(agent, options) if options.mode in GIVING else None
    if text is not None and not options.agree:
        shown = {"mode": options.mode, "text": text, "sha256": text_digest(text), "records": options.records}
        document = {**shown, "agreed": False}
        _print(document, f"{text}\n\nNothing was changed. To agree to this text, add --agree.", options)
        return
    withdrawn = agent.consent(options.mode, text, records=options.records)
    said = {
        OFF: "Consent is withdrawn and all searches are erased.",
        SEARCH: "Packs are fetched, nothing is given, and all searches are erased.",
    }.get(options.mode, f"The mode is {options.mode} now.")
    document = {"mode": options.mode, "sha256": text_digest(text) if text else None, "agreed": text is not None}
    _print_withdrawn(document, said, withdrawn, options)


def _text(agent: DeviceAgent, options: argparse.Namespace) -> str:
    from searchblend.device.consent_texts import text_of

    if options.text is None:
        return text_of(options.mode, options.records, agent.own_consent)
    try:
        own = str(Path(options.text).read_text(encoding="utf-8")).rstrip("\n")
        return text_of(options.mode, options.records, own)
    except (OSError, ValueError) as error:
        raise InputError(options.text, f"cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None


def _record(agent: DeviceAgent, options: argparse.Namespace) -> None:
    admission = agent.record(options.query, options.url)
    message = "Kept on this computer." if admission.kept else f"Not kept: {admission.reason}."
    _print({"kept": admission.kept, "reason": admission.reason}, message, options)


def _import(agent: DeviceAgent, options: argparse.Namespace) -> None:
    counts = agent.import_searches(options.file)
    lines = [f"{name}: {n}" for name, n in sorted(counts.items(), key=lambda item: (item[0] != "kept", item[0]))]
    _print(counts, "\n".join(lines) or "The file is empty.", options)


def _sync(agent: DeviceAgent, options: argparse.Namespace) -> None:
    outcome = agent.sync(immediately=options.now)
    if options.json:
        _print(encode(outcome), "", options)
    elif outcome.ok:
        print_line(outcome.text[0].upper() + outcome.text[1:] + ".")
    if outcome.pack and not options.json:
        print_line(f"Local-search pack: {outcome.pack}.")
    if not outcome.ok:
        raise DeviceError(outcome.text)


def _status(agent: DeviceAgent, options: argparse.Namespace) -> None:
    status = agent.status()
    if options.json:
        _print(encode(status), "", options)
        return
    budget, last = status.budget, status.last
    for name, value in vars(status).items():
        if name not in ("budget", "last"):
            print_line(f"{name.replace('_', ' ')}: {word(value)}")
    print_line(f"ε in {budget.window_days} days: {budget.window_epsilon:g}, {budget.window_epsilon_left:g} left")
    print_line(f"ε in all: {budget.lifetime_epsilon:g}, {budget.lifetime_epsilon_left:g} left")
    if last:
        print_line(f"last sync ({_time(last.at)}): {last.text}")


def _show(agent: DeviceAgent, options: argparse.Namespace) -> None:
    rows = agent.sent()
    if options.json:
        _print(encode(rows), "", options)
        return
    if not rows:
        print_line("Nothing was ever sent.")
        return
    cells = [
        (
            str(row.round),
            row.group,
            row.state,
            _pairs(row.true),
            "\n".join(_said(part) for part in row.said) if row.said else "erased",
            row.epsilon,
            str(len(row.bytes) // 2) if row.bytes else "–",
            _time(row.made_at),
        )
        for row in rows
    ]
    columns = ("round", "group", "state", "true", "said", "ε", "bytes", "when")
    title, words = "Every report of this device. What was true never left it", set(columns) - {"round", "ε", "bytes"}
    print_table(new_table(title, columns, cells, words=words))
    for row in rows:
        if odds := next((part.odds for part in row.said or []), None):
            print_line(f"Round {row.round}: {odds}.")


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
    is_left = agent.status().task is None
    said = (
        "Left the task; everything but the ledger is erased." if is_left else "All is erased, but the task is not left."
    )
    _print_withdrawn({"left": is_left}, said, withdrawn, options)


def _export(agent: DeviceAgent, options: argparse.Namespace) -> None:
    options.json = True
    _print(encode(agent.export()), "", options)


def _print_withdrawn(document: JsonObject, said: str, withdrawn: Outcome | None, options: argparse.Namespace) -> None:
    if withdrawn is not None:
        document = {**document, "contribution": withdrawn.status}
        said += f" {withdrawn.text[0].upper()}{withdrawn.text[1:]}."
    _print(document, said, options)
    if withdrawn is not None and not withdrawn.ok:
        raise DeviceError(withdrawn.text)


def _print(document: Any, said: str, options: argparse.Namespace) -> None:
    if options.json:
        print_json(document)
    else:
        print_line(said)


def _said(part: ReportedPart) -> str:
    return _pairs(part.items) if part.items else f"none of the {part.about} (the sink)"


def _pairs(pairs: list[list[str | None]] | None) -> str:
    if pairs is None:
        return "erased"
    return ", ".join(" → ".join("⋆" if text is None else text for text in pair) for pair in pairs)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _search(agent: DeviceAgent, options: argparse.Namespace) -> None:
    from searchblend.search.build_pack import SearchIndex

    pack = agent.pack()
    if pack is None:
        raise DeviceError("there is no pack yet; `searchblend device sync` fetches one when the task has published it")
    matches = SearchIndex(pack).search(options.query, options.limit)
    unit = pack.info.unit
    if options.json:
        rows = [
            {
                "query": item.entry.query,
                "kind": item.kind,
                "probability": item.entry.probability * unit,
                "urls": [url.url for url in item.entry.urls],
            }
            for item in matches
        ]
        print_json({"round": pack.info.round, "found": rows})
        return
    if not matches:
        print_line("Nothing in the pack fits.")
        return
    cells = [
        (
            item.entry.query,
            item.kind,
            f"{100 * item.entry.probability * unit:.3g} %",
            item.entry.urls[0].url if item.entry.urls else "–",
        )
        for item in matches
    ]
    title = f"From the pack of round {pack.info.round}, best first"
    print_table(new_table(title, ("query", "fits", "share", "URL"), cells, words=("query", "fits", "URL")))
