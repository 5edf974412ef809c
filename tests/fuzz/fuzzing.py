"""How schemathesis is run against a server: which checks, from which seed, with which names."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from api import openapi

HERE = Path(__file__).parent
ASKED = os.environ.get("MUSTER_TEST_FUZZ")  # "long", or a number of examples per operation
LONG = 30
SEED = 20310101
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
)


def explicit() -> dict[str, Any]:
    """The document without its catch-all, so that every answer must be named."""
    document: dict[str, Any] = json.loads(openapi.rendered())
    for methods in document["paths"].values():
        for operation in methods.values():
            del operation["responses"]["default"]
    return document


def fuzz(
    url: str, token: str, folder: Path, there: dict[str, str], *arguments: str, short: int
) -> None:
    """No 5xx and no answer that the document does not know, or it fails with what was found.

    `there` gives the names of things that exist; `short` is the number of examples in `make test`.
    """
    document = folder / "openapi.json"
    document.write_text(json.dumps(explicit()))
    examples = short if not ASKED else LONG if ASKED == "long" else int(ASKED)
    command = [
        Path(sys.executable).with_name("st"),
        f"--config-file={HERE / ('long.toml' if ASKED else 'short.toml')}",
        "run",
        document,
        f"--url={url}",
        f"--header=Authorization: Bearer {token}",
        f"--seed={SEED}",
        f"--max-examples={examples}",
        f"--checks={','.join(CHECKS)}",
        "--continue-on-failure",
        "--no-color",
        "--warnings=off",
        "--request-timeout=40",
        "--suppress-health-check=all",
        *arguments,
    ]
    environ = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
        "MUSTER_TEST_THERE": json.dumps(there),
        "PYTHONPATH": str(HERE.parent.parent),
    }
    run = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    print(run.stdout[-6000:])
    assert run.returncode == 0, run.stdout[-20000:] + run.stderr[-2000:]
