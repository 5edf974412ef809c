"""Each check of the workload contract (workloads.md 9) has a test with its number."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NUMBERED = re.compile(r"^(?:async )?def test_check_(\d+)_|^@check\((\d+)\)", re.MULTILINE)
OF_COMMANDS = {52, 53, 54, 55}  # steps that are commands do not exist yet


def test_every_check_has_a_test_with_its_number():
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py"))
    found = {int(a or b) for text in texts for a, b in NUMBERED.findall(text)}

    assert sorted(found) == sorted(set(range(1, 63)) - OF_COMMANDS)
