"""Splits a server's bytes into protocol messages and tracks the state of the session."""

from collections.abc import Callable

from muster.core.pinned_transport import MESSAGE_LIMIT, SIZE, Tap

HEADER = 5  # bytes: the kind of a message and its size
READY, ERROR, PARAMETER = b"ZES"
SESSION_MESSAGES = frozenset((READY, ERROR, PARAMETER))  # the others are about a statement
IDLE, IN_TRANSACTION, FAILED_TRANSACTION = b"ITE"  # transaction status
MAX_FIELD_LENGTH = 8 * 1024  # characters of one field of an error or a notice
# All of them contain ASCII. With any other encoding only ASCII is sent.
CODECS = {
    b"UTF8": "utf-8", b"SQL_ASCII": "utf-8", b"BIG5": "big5", b"EUC_CN": "gb2312", b"EUC_JP": "euc_jp",
    b"EUC_JIS_2004": "euc_jis_2004", b"EUC_KR": "euc_kr", b"GB18030": "gb18030", b"GBK": "gbk",
    b"ISO_8859_5": "iso8859-5", b"ISO_8859_6": "iso8859-6", b"ISO_8859_7": "iso8859-7",
    b"ISO_8859_8": "iso8859-8", b"KOI8R": "koi8-r", b"KOI8U": "koi8-u", b"LATIN1": "latin-1",
    b"LATIN2": "iso8859-2", b"LATIN3": "iso8859-3", b"LATIN4": "iso8859-4", b"LATIN5": "iso8859-9",
    b"LATIN6": "iso8859-10", b"LATIN7": "iso8859-13", b"LATIN8": "iso8859-14", b"LATIN9": "iso8859-15",
    b"LATIN10": "iso8859-16", b"UHC": "cp949", b"WIN866": "cp866", b"WIN874": "cp874",
    **{f"WIN{page}".encode(): f"cp{page}" for page in range(1250, 1259)},
}  # fmt: skip


class MessageParser(Tap):
    """The connection sets `answered` and `hung_up`, and reads `failure` and `tag` when a reply is complete."""

    def __init__(self) -> None:
        self.answered: Callable[[], None] = _ignore
        self.hung_up: Callable[[], None] = _ignore
        self.status = IDLE
        self.failure: dict[str, str] | None = None
        self.standard_strings = True
        self.encoding = "utf-8"
        self.broken_off = False
        self._incomplete: bytearray | None = None
        self._missing = 0  # bytes until the incomplete message, or its header, is complete

    def feed(self, data: bytes) -> None:
        if self._incomplete is not None:
            self._incomplete += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data, self._incomplete = bytes(self._incomplete), None
        at, mark, end = self.skip_known_prefix(data, 0), 0, len(data)
        while end - at >= HEADER and not self.broken_off:
            (size,) = SIZE(data, at + 1)
            if size > MESSAGE_LIMIT:
                self.too_large()
                return
            if size < 4:
                self.break_off("it does not speak PostgreSQL's protocol")
                return
            after = at + 1 + size
            if after > end:
                break
            kind = data[at]
            if kind == READY:
                self.count(after - mark)
                self.status = data[at + HEADER] if size > 4 else IDLE
                self.ready()
                mark = after
                after = self.skip_known_prefix(data, after)
            elif kind in SESSION_MESSAGES:
                self._on_session_message(kind, data[at + HEADER : after])
            else:
                self.on_message(kind, data, at + HEADER, after)
            at = after
        self.count(at - mark)
        if at < end:
            self._incomplete = bytearray(data[at:])
            enough = end - at >= HEADER
            size = 1 + int.from_bytes(data[at + 1 : at + HEADER], "big") if enough else HEADER
            self._missing = size - (end - at)

    def skip_known_prefix(self, data: bytes, at: int) -> int:  # noqa: ARG002 - for subclasses
        """Where parsing continues; `at` is at the beginning of a message."""
        return at

    def count(self, size: int) -> None:
        """That many bytes of a reply were parsed."""

    def on_message(self, kind: int, data: bytes, start: int, end: int) -> None:
        """A message about a statement; its body is `data[start:end]`."""

    def too_large(self) -> None:
        """A message is larger than the limit."""
        self.break_off(f"it sent a message of more than {MESSAGE_LIMIT >> 20} MB")

    def ready(self) -> None:
        """A reply is complete."""
        self.answered()

    def lost(self) -> None:
        self.hung_up()

    def break_off(self, why: str) -> None:
        """Closes the connection; further bytes are ignored."""
        self.broken_off = True
        super().break_off(why)

    def _on_session_message(self, kind: int, body: bytes) -> None:
        if kind == ERROR:
            self.failure = fields(body) if self.failure is None else self.failure
        else:
            name, _, value = body.partition(b"\0")
            if name == b"standard_conforming_strings":
                self.standard_strings = value == b"on\0"
            elif name == b"client_encoding":
                self.encoding = CODECS.get(value[:-1], "ascii")


def fields(body: bytes) -> dict[str, str]:
    """Of an error or a notice, by their codes."""
    parts = (part for part in body.split(b"\0") if part)
    return {chr(part[0]): text(part[1:])[:MAX_FIELD_LENGTH] for part in parts}


def text(value: bytes) -> str:
    """Invalid UTF-8 is replaced and NUL removed: JSON in a database can't contain it."""
    return value.decode("utf-8", "replace").replace("\0", "")


def _ignore() -> None:
    """Until a connection sets its callbacks."""
