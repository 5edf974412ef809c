"""Errors as Terraform shows them: a code, a message, and the attribute that is meant."""

from typing import Any

from tf.gen import tfplugin_pb2 as pb

from muster_terraform.api import ApiError
from muster_terraform.attributes import Attribute
from muster_terraform.values import attribute_path


def error(summary: str, detail: str = "", path: list[str | int] | None = None) -> Any:
    made = pb.Diagnostic(severity=pb.Diagnostic.ERROR, summary=summary, detail=detail)
    for step in path or []:
        if isinstance(step, int):
            made.attribute.steps.add(element_key_int=step)
        else:
            made.attribute.steps.add(attribute_name=step)
    return made


def of_api(refused: ApiError, attributes: tuple[Attribute, ...] = ()) -> list[Any]:
    """One for each field that is wrong."""
    return [_one(each, attributes) for each in refused.details or (refused,)]


def _one(refused: ApiError, attributes: tuple[Attribute, ...]) -> Any:
    path = attribute_path(attributes, refused.target) if refused.target else []
    where = f"\n\nField of the API: {refused.target}" if refused.target and not path else ""
    return error(refused.code, f"{refused.message}{where}", path)
