"""How quickly tasks end, of late: so many more than run may wait at their hosts, ready to start.

A host that had to ask the core for each next task would stand idle meanwhile. What waits there has its
turn, so it is no more than what ends in a moment: who comes later waits that much longer. Where tasks
are long, nothing waits there.
"""

import math
from collections import deque

WINDOW = 0.5  # seconds that are looked back
MOMENT = 0.15  # seconds


class Pace:
    def __init__(self) -> None:
        self._ended: deque[tuple[float, int]] = deque()
        self._sum = 0

    def ended(self, number: int, now: float) -> None:
        self._ended.append((now, number))
        self._sum += number

    def ahead(self, now: float) -> int:
        """Tasks that will end in a moment."""
        while self._ended and self._ended[0][0] < now - WINDOW:
            self._sum -= self._ended.popleft()[1]
        return math.ceil(self._sum * MOMENT / WINDOW)
