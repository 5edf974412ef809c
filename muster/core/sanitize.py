"""Text of other parties as Muster repeats it: printable, in one line, short."""

LONGEST = 500  # characters


def plain(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text[:LONGEST])
