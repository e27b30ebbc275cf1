"""Write the vectors of what a device looks for in a search: the suspicions that texts raise, and which are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from searchblend.core.admission import admit
from searchblend.core.suspects import Suspects

HERE = Path(__file__).parent / "v1"
TEXTS = {
    "a word": "weather",
    "years": "world war 2 1939-1945",
    "a version": "python 3.11.4",
    "a postcode": "zip 94110-1234",
    "eight digits": "5 million 12345678 rows",
    "a card": "4111 1111 1111 1111",
    "a card in a sentence": "pay with 4111-1111-1111-1111 now",
    "a card of 15 digits": "378282246310005",
    "a wrong check digit": "4111 1111 1111 1112",
    "one digit repeated": "0000 0000 0000 0000",
    "Arabic digits of a card": "٤١١١ ١١١١ ١١١١ ١١١١",
    "Devanagari digits of a card": "४१११११११११११११११",
    "mathematical digits of a card": "𝟒𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏",
    "an address": "mail jane.doe+x@mail.example.org",
    "an address in words": "jane (at) mail.example",
    "an address in brackets, capitals": "jane [AT] mail.example",
    "an address with accents": "zoë@müller.example",
    "an address without a dot": "jane@localhost",
    "a sign alone": "@ home",
    "a telephone number": "+49 (0)30 901820",
    "a telephone number without blanks": "+14155550132",
    "a telephone number in groups": "call 415-555-0132",
    "a telephone number in brackets": "(415) 555 0132",
    "an area code": "area code 415",
    "a national id": "078-05-1120",
    "an account": "de89 3704 0044 0532 0130 00",
    "an account in capitals": "GB82WEST12345698765432",
    "an account with a wrong sum": "de88 3704 0044 0532 0130 00",
    "a dotless i among letters": "dı12 3456 abcd efgh",
    "nine digits": "987654321",
    "nine digits in groups": "987 654 321",
    "a network address": "router 192.168.0.1 login",
    "not a network address": "256.1.1.1",
    "five numbers": "1.2.3.4.5",
    "a password": "https://jane:secret@intranet.example/",
    "a session": "https://shop.example/cart?sessionid=81aa",
    "a session in the path": "https://a.example/x;jsessionid=12",
    "a key in capitals": "https://a.example/?API_KEY=1",
    "a harmless parameter": "https://www.example.com/search?q=4",
    "two suspicions": "jane@mail.example 192.168.0.1",
}
SEARCHES: dict[str, tuple[str, str | None]] = {
    "a search": ("Weather  Berlin", "https://www.weather.example/berlin?day=1#top"),
    "a query alone": ("weather", None),
    "nothing": ("  ", None),
    "an unassigned code point": ("a\u0378", None),
    "a zero byte": ("a\0b", None),
    "a control character of the second row": ("a\x9bb", None),
    "a turned text": ("a\u202eb", None),
    "an isolate": ("\u2066weather", None),
    "a mark from right to left": ("\u05d0\u200f", None),
    "a joiner": ("\u0646\u200c\u0645", None),
    "a tab": ("a\tb", None),
    "a zero byte in the address": ("a", "http://a.example/\0"),
    "a zero byte in the address's query string": ("a", "http://a.example/?\0"),
    "a turned address": ("a", "http://a.example/\u202egpj.exe"),
    "500 code points": ("😀" * 500, None),
    "501 code points": ("😀" * 501, None),
    "longer when folded": ("ﷺ" * 100, None),
    "a long address": ("weather", "http://a.example/" + "x" * 1984),
    "a card": ("4111 1111 1111 1111", "https://a.example"),
    "a token in the address": ("a", "https://a.example/?token=1"),
    "an intranet name": ("a", "http://wiki/page"),
    "a private suffix": ("a", "http://wiki.corp/page"),
    "a private suffix and a dot": ("a", "http://wiki.corp./page"),
    "another port": ("a", "http://www.example.com:8080/"),
    "the usual port": ("a", "http://www.example.com:80/"),
    "a numeric host": ("a", "http://2130706433/"),
    "a hexadecimal host": ("a", "http://www.0x7f/"),
    "an address of version 6": ("a", "http://[2001:db8::1]/"),
    "a name before the host": ("a", "http://jane@www.example.com/"),
    "no web address": ("a", "ftp://www.example.com/"),
    "a file": ("a", "file:///home/jane"),
    "a page title": ("a", "Example page"),
    "a private address typed": ("http://wiki.corp/page", None),
    "a public address typed": ("http://www.example.com/page", None),
    "two dots": ("a", "http://www..example.com/"),
    "capitals": ("A", "HTTPS://WWW.Example.COM/Path"),
}


def main() -> None:
    suspects = Suspects()
    texts = [
        {"name": name, "in": text, "out": [suspicion.value for suspicion in suspects.in_text(text)]}
        for name, text in TEXTS.items()
    ]
    searches = [
        {"name": name, "query": query, "url": url, "out": asdict(admit(query, url))}
        for name, (query, url) in SEARCHES.items()
    ]
    document = {"version": 1, "texts": texts, "searches": searches}
    (HERE / "suspects.json").write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
