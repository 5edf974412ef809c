"""Cuts what a server says into messages, and knows from them what the session is like."""

from collections.abc import Callable

from muster.core.pinned_transport import MESSAGE_LIMIT, SIZE, Tap

HEAD = 5  # bytes: the kind of a message and its size
READY, ERROR, PARAMETER = b"ZES"
ABOUT = frozenset((READY, ERROR, PARAMETER))  # the session, not a statement
AT_REST, IN_TRANSACTION, FAILED_TRANSACTION = b"ITE"  # transaction status
LONGEST = 8 * 1024  # characters of one text in an error or a notice
# Every one of them has ASCII in it. In others nothing but ASCII is sent.
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
    """Whoever speaks sets `answered` and `hung_up`, and takes `failure` and `tag` when an answer is over."""

    def __init__(self) -> None:
        self.answered: Callable[[], None] = _nothing
        self.hung_up: Callable[[], None] = _nothing
        self.status = AT_REST
        self.failure: dict[str, str] | None = None
        self.standard_strings = True
        self.encoding = "utf-8"
        self.broken_off = False
        self._held: bytearray | None = None
        self._missing = 0  # bytes until what is held makes sense

    def feed(self, data: bytes) -> None:
        if self._held is not None:
            self._held += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data, self._held = bytes(self._held), None
        at, mark, end = self.leap(data, 0), 0, len(data)
        while end - at >= HEAD and not self.broken_off:
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
                self.status = data[at + HEAD] if size > 4 else AT_REST
                self.ready()
                mark = after
                after = self.leap(data, after)
            elif kind in ABOUT:
                self._learn(kind, data[at + HEAD : after])
            else:
                self.hear(kind, data, at + HEAD, after)
            at = after
        self.count(at - mark)
        if at < end:
            self._held = bytearray(data[at:])
            enough = end - at >= HEAD
            size = 1 + int.from_bytes(data[at + 1 : at + HEAD], "big") if enough else HEAD
            self._missing = size - (end - at)

    def leap(self, data: bytes, at: int) -> int:  # noqa: ARG002 - who knows what comes may use it
        """From where on it must be looked at; an answer begins there, or goes on."""
        return at

    def count(self, size: int) -> None:
        """So many bytes of an answer were looked at."""

    def hear(self, kind: int, data: bytes, start: int, end: int) -> None:
        """A message that is about a statement; its body stands there."""

    def too_large(self) -> None:
        """A message is larger than any may be."""
        self.break_off(f"it sent a message of more than {MESSAGE_LIMIT >> 20} MB")

    def ready(self) -> None:
        """An answer is over."""
        self.answered()

    def lost(self) -> None:
        self.hung_up()

    def break_off(self, why: str) -> None:
        """Nothing more is heard."""
        self.broken_off = True
        super().break_off(why)

    def _learn(self, kind: int, body: bytes) -> None:
        if kind == ERROR:
            self.failure = fields(body) if self.failure is None else self.failure
        else:
            name, _, value = body.partition(b"\0")
            if name == b"standard_conforming_strings":
                self.standard_strings = value == b"on\0"
            elif name == b"client_encoding":
                self.encoding = CODECS.get(value[:-1], "ascii")


def fields(body: bytes) -> dict[str, str]:
    """Of an error or a notice."""
    parts = (part for part in body.split(b"\0") if part)
    return {chr(part[0]): text(part[1:])[:LONGEST] for part in parts}


def text(value: bytes) -> str:
    """JSON in a database can't hold a NUL, and no server has to be honest."""
    return value.decode("utf-8", "replace").replace("\0", "")


def _nothing() -> None:
    """Nobody has asked anything."""
