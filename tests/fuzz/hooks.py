"""What schemathesis is told beside the document: the names of things that exist, most of the time."""

import json
import os
import random
from typing import Any

import schemathesis

THERE: dict[str, str] = json.loads(os.environ["MUSTER_TEST_THERE"])
GENERATOR = random.Random(1)  # noqa: S311 - repeatable on purpose


@schemathesis.hook
def map_path_parameters(ctx: Any, path_parameters: dict[str, Any] | None) -> Any:
    """Without this nearly every request would end at a subscription that is not there."""
    if path_parameters:
        for name, value in THERE.items():
            if name in path_parameters and GENERATOR.random() < 0.8:
                path_parameters[name] = value
    return path_parameters
