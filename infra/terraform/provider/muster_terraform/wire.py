"""Values and schemas in the form of Terraform's plugin protocol."""

from typing import Any

import msgpack
from tf.gen import tfplugin_pb2 as pb

from muster_terraform.attributes import UNKNOWN, Attribute, Nested
from muster_terraform.types import ResourceType

WRITE_ONLY = b"\x58\x01"  # field 11 of an attribute, which the generated messages don't know yet


def decode(value: Any) -> Any:
    """An extension of any number is an unknown value; newer ones say more about it."""
    if not value.msgpack:
        return None
    return msgpack.unpackb(value.msgpack, ext_hook=lambda *_: UNKNOWN, strict_map_key=False)


def encode(value: Any) -> Any:
    if value is None:
        return pb.DynamicValue(msgpack=b"\xc0")
    return pb.DynamicValue(
        msgpack=msgpack.packb(value, default=lambda _: msgpack.ExtType(0, b"\0"))
    )


def resource_schema(type: ResourceType) -> Any:
    return pb.Schema(version=0, block=_block(type.complete, type.about))


def data_schema(type: ResourceType) -> Any:
    """What names it is given; all else is read."""
    attributes = [
        _attribute(each, reading=each.name not in {"name", type.parent})
        for each in type.complete
        if not _only_written(each)
    ]
    block = pb.Schema.Block(attributes=attributes, description=type.about)
    return pb.Schema(version=0, block=block)


def provider_schema(attributes: tuple[Attribute, ...], about: str) -> Any:
    return pb.Schema(version=0, block=_block(attributes, about))


def readable(attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    return tuple(each for each in attributes if not _only_written(each))


def _only_written(attribute: Attribute) -> bool:
    return attribute.write_only or attribute.name.endswith("_wo_version")


def _block(attributes: tuple[Attribute, ...], about: str) -> Any:
    made = pb.Schema.Block(description=about)
    mode = pb.Schema.NestedBlock.NestingMode
    for each in attributes:
        if isinstance(each.kind, Nested):
            inner = _block(each.kind.attributes, each.about)
            nesting = mode.LIST if each.kind.many else mode.SINGLE
            made.block_types.add(type_name=each.name, block=inner, nesting=nesting)
        else:
            made.attributes.append(_attribute(each))
    return made


def _attribute(attribute: Attribute, *, reading: bool = False) -> Any:
    about = attribute.about
    if attribute.choices:
        about = f"{about} One of {', '.join(attribute.choices)}.".strip()
    made = pb.Schema.Attribute(
        name=attribute.name,
        description=about,
        required=attribute.required and not reading,
        optional=attribute.optional and not attribute.required and not reading,
        computed=reading or attribute.computed or attribute.default is not None,
        sensitive=attribute.sensitive,
    )
    if isinstance(attribute.kind, Nested):
        inner = attribute.kind.attributes
        mode = pb.Schema.Object.NestingMode
        made.nested_type.nesting = mode.LIST if attribute.kind.many else mode.SINGLE
        made.nested_type.attributes.extend(
            _attribute(each, reading=True) for each in readable(inner)
        )
    else:
        made.type = attribute.kind.encode()
    if attribute.write_only:
        made.MergeFromString(WRITE_ONLY)
    return made
