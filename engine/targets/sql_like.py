"""LIKE without a database: whether a name fits a pattern.

Schemas have patterns of LIKE. Databases have `*` and `?`, since `_` is a letter of many names.
"""

from collections.abc import Iterator
from dataclasses import dataclass

ANY = "any text"  # no letter is so long


@dataclass(frozen=True)
class LikePattern:
    """A pattern of SQL's LIKE: % is any text, _ any letter, a backslash takes the next one as it is."""

    pattern: str

    def matches(self, text: str) -> bool:
        """In time of pattern × text at worst: of a % only the last one is ever gone back to."""
        parts = list(_parts(self.pattern))
        at = here = 0
        back: tuple[int, int] | None = None
        while here < len(text):
            if at < len(parts) and parts[at] is ANY:
                back, at = (at, here), at + 1
            elif at < len(parts) and parts[at] in (None, text[here]):
                at, here = at + 1, here + 1
            elif back is not None:
                back = (back[0], back[1] + 1)
                at, here = back[0] + 1, back[1]
            else:
                return False
        return all(part is ANY for part in parts[at:])


def _parts(pattern: str) -> Iterator[str | None]:
    """Letters; None for any one of them."""
    letters = iter(pattern)
    for letter in letters:
        if letter == "\\":
            yield next(letters, "\\")
        else:
            yield {"%": ANY, "_": None}.get(letter, letter)


def database_pattern(name: str | None) -> LikePattern | None:
    """None: it is a name. With * (any text) or ? (any letter) it is a pattern.

    In a pattern, a backslash takes the next letter as it is.
    """
    if name is None or not {"*", "?"} & set(name):
        return None
    letters = iter(name)
    wild = {"*": "%", "?": "_", "%": "\\%", "_": "\\_"}
    return LikePattern(
        "".join(
            "\\" + next(letters, "\\") if letter == "\\" else wild.get(letter, letter)
            for letter in letters
        )
    )
