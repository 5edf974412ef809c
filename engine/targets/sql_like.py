"""Matches names against SQL LIKE patterns, without a database.

Patterns of schemas are those of LIKE. Patterns of databases have `*` and `?`, since many names contain `_`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

ANY = "any text"  # longer than any character, so different from all


@dataclass(frozen=True)
class LikePattern:
    """A LIKE pattern: % matches any text, _ any character, a backslash escapes the next character."""

    pattern: str

    def matches(self, text: str) -> bool:
        """Takes at most pattern × text steps: only the last % is backtracked to."""
        parts = list(_parts(self.pattern))
        part = position = 0
        last_any: tuple[int, int] | None = None  # its part, and where the text after it begins
        while position < len(text):
            if part < len(parts) and parts[part] is ANY:
                last_any, part = (part, position), part + 1
            elif part < len(parts) and parts[part] in (None, text[position]):
                part, position = part + 1, position + 1
            elif last_any is not None:
                last_any = (last_any[0], last_any[1] + 1)
                part, position = last_any[0] + 1, last_any[1]
            else:
                return False
        return all(each is ANY for each in parts[part:])


def _parts(pattern: str) -> Iterator[str | None]:
    """Characters, ANY, and None for any one character."""
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            yield next(characters, "\\")
        else:
            yield {"%": ANY, "_": None}.get(character, character)


def database_pattern(name: str | None) -> LikePattern | None:
    """None for a plain name. A name with * (any text) or ? (any character) is a pattern.

    In a pattern, a backslash escapes the next character.
    """
    if name is None or not {"*", "?"} & set(name):
        return None
    characters = iter(name)
    wild = {"*": "%", "?": "_", "%": "\\%", "_": "\\_"}
    return LikePattern(
        "".join(
            "\\" + next(characters, "\\") if character == "\\" else wild.get(character, character)
            for character in characters
        )
    )
