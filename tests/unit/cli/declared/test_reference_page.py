"""The examples of docs/reference/declarative-files.md are read without an error; each kind has one."""

import re
from pathlib import Path

from muster.cli.declared.kinds import KINDS
from muster.cli.declared.reader import read

PAGE = (Path(__file__).parents[4] / "docs/reference/declarative-files.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_kind_has_an_example(tmp_path):
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql/analyze.sql").write_text("analyze")
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"{number}.yaml").write_text(example)

    documents = read([str(tmp_path)])

    assert {each.kind.name for each in documents} == set(KINDS)
