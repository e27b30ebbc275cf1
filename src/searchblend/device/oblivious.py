"""A device's way through a relay (RFC 9458): the service does not see who asks, nor the relay what is said.

Apart from ``transport``, which needs the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

from searchblend.core.errors import MessageError
from searchblend.device.device_errors import DeviceRefused, NoAnswer
from searchblend.device.transport import Answer, Transport
from searchblend.wire.binary_http import HttpRequest, decode_response, encode_request
from searchblend.wire.manifest import LARGEST as LARGEST_MANIFEST
from searchblend.wire.ohttp import (
    KEY_PROBLEM,
    KEYS_MEDIA_TYPE,
    LARGEST_KEYS,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    KeyConfiguration,
    SealedRequest,
    decode_configurations,
    largest_response,
)


class ObliviousTransport(Transport):
    """The same service through a relay, with requests that only the service's gateway can open (RFC 9458).

    The gateway's key comes from the relay, which gives all devices the same, and is believed when a manifest names it.
    Before, nothing is sealed to it but requests for what is public: with a key of its own the relay could read along.

    Args:
        address: of the service
        relay: its address
        manifest: path of the task's manifest
        named: the digests of gateways' keys that a manifest's bytes name; ``DeviceRefused`` if it is not believed
        seconds: how long an answer may take
        plain_http: whether the relay may be on another machine and without https
    """

    def __init__(
        self,
        address: str,
        relay: str,
        manifest: str,
        named: Callable[[bytes], Collection[str]],
        *,
        seconds: float = 30.0,
        plain_http: bool = False,
    ) -> None:
        super().__init__(address, plain_http=plain_http)
        self._line = Transport(relay, seconds=seconds, plain_http=plain_http)
        self._manifest, self._named = manifest, named
        self._key: KeyConfiguration | None = None
        self._is_believed = False

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        at_most: int,
    ) -> Answer:
        fields = tuple((name.lower(), value) for name, value in (headers or {}).items())
        request = HttpRequest(method, self._parts.scheme, self._parts.netloc, path, fields, body or b"")
        is_public = method == "GET" and not fields and not body
        for _ in range(2):
            if not is_public:
                self._confirm()
            answer = self._exchange(request, at_most)
            if answer is not None:
                return answer
            self._forget_key()  # the gateway has another by now
        raise NoAnswer("relay", "the relay gives out a key that the gateway does not have")

    def believe(self, gateway_keys: Collection[str]) -> None:
        """``DeviceRefused`` if the key in use is not among these."""
        if self._key is not None and self._key.digest not in gateway_keys:
            self._forget_key()
            raise DeviceRefused("gateway-key")
        self._is_believed = self._key is not None

    def close(self) -> None:
        self._line.close()

    def _confirm(self) -> None:
        """See that a manifest names the key."""
        if self._is_believed:
            return
        answer = self.send("GET", self._manifest, at_most=LARGEST_MANIFEST)
        if answer.status != 200:
            raise NoAnswer("refused", f"status {answer.status}")
        try:
            self.believe(self._named(answer.body))
        except DeviceRefused as refusal:
            raise NoAnswer("relay", str(refusal)) from None
        if not self._is_believed:
            raise NoAnswer("relay", "no manifest names the key")

    def _exchange(self, request: HttpRequest, at_most: int) -> Answer | None:
        """The gateway's answer; None if it does not have the key."""
        sealed = self._sealed(encode_request(request))
        headers = {"Content-Type": REQUEST_MEDIA_TYPE}
        outer = self._line.send("POST", "/", sealed.message, headers=headers, at_most=largest_response(at_most))
        if outer.status == 200 and _media_type(outer) == RESPONSE_MEDIA_TYPE:
            try:
                answer = decode_response(sealed.open(outer.body))
            except MessageError:
                raise NoAnswer("garbage", "the answer is not the gateway's") from None
            if len(answer.content) > at_most:
                raise NoAnswer("too-large", "the answer is larger than this device takes")
            return Answer(answer.status, dict(answer.fields), answer.content)
        if outer.status == 400 and _is_key_problem(outer.body):
            return None
        raise NoAnswer("relay", f"status {outer.status}")

    def _sealed(self, request: bytes) -> SealedRequest:
        if self._key is None:
            answer = self._line.send("GET", "/", at_most=LARGEST_KEYS)
            if answer.status != 200 or _media_type(answer) != KEYS_MEDIA_TYPE:
                raise NoAnswer("relay", f"no key: status {answer.status}")
            try:
                self._key = decode_configurations(answer.body)[0]
            except MessageError as error:
                raise NoAnswer("relay", str(error)) from None
        try:
            return SealedRequest(self._key, request)
        except MessageError as error:
            self._forget_key()
            raise NoAnswer("relay", str(error)) from None

    def _forget_key(self) -> None:
        self._key, self._is_believed = None, False


def _media_type(answer: Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_key_problem(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("type") == KEY_PROBLEM
