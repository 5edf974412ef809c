"""The Python SDK: models, groups and scopes as source text; the runtime beside them is written by hand.

The asynchronous form is generated; `synchronous` derives the other one from it, line by line.
"""

import keyword
import re
import textwrap
from collections.abc import Iterator

from openapi.sdk import naming
from openapi.sdk.document import Model, Models, Operation, Parameter, Type
from openapi.sdk.layout import Call, Group, Scope, distinct_groups, envelope, every, used

TYPES = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "time": "datetime", "any": "Any",
}  # fmt: skip
WIDTH = 100


def models(models: Models, operations: tuple[Operation, ...]) -> str:
    """The module of all models."""
    classes, words = used(models, operations)
    lines = [
        '"""What operations take and give. Fields that are None are not sent."""',
        "",
        "from __future__ import annotations",
        "",
        "import builtins",
        "from datetime import datetime",
        "from typing import TYPE_CHECKING, Any, Literal",
        "",
        "from muster_sdk._model import Model, Resource",
        "",
        "if TYPE_CHECKING:  # other words may come: a later server can have new ones",
    ]
    lines += [f"    {name} = Literal[{_texts(models.words[name])}] | str" for name in words]
    lines += ["else:", *(f"    {name} = str" for name in words)]
    for each in classes:
        lines += ["", "", *_model(each)]
    names = [each.name for each in classes] + words
    lines += ["", "", f"__all__ = [{_texts(tuple(sorted(names)))}]"]
    return "\n".join(lines) + "\n"


def _model(model: Model) -> Iterator[str]:
    base = "Resource" if model.resource else "Model"
    yield f"class {model.name}({base}, kw_only=True, rename={_renamed(model)}):"
    described = [each for each in model.fields if each.about]
    if described:
        yield '    """'
        for each in described:
            yield from _wrapped(f"{_attribute(each.wire)}: {each.about}", "    ")
        yield '    """'
        yield ""
    for each in model.fields:
        shown = _type(each.type)
        if each.required:
            yield f"    {_attribute(each.wire)}: {shown}"
        elif envelope(each):
            yield f'    {_attribute(each.wire)}: {shown} = ""'
        else:
            yield f"    {_attribute(each.wire)}: {shown} | None = None"
    if not model.fields:
        yield "    pass"
    if model.resource:
        inside = tuple(each.wire for each in model.fields if each.nested)
        yield ""
        yield f"    __inside__ = frozenset(({_texts(inside)},))"


def _renamed(model: Model) -> str:
    """How the attributes are called on the wire, where they are called otherwise."""
    odd = {
        _attribute(each.wire): each.wire
        for each in model.fields
        if _attribute(each.wire) != each.wire
    }
    return repr(odd)


def groups(top: Scope) -> str:
    """The module of the groups of operations, asynchronous."""
    lines = _head(
        '"""Operations by what they are about."""', "from muster_sdk.aio._calls import Calls"
    )
    for group in distinct_groups(top).values():
        lines += ["", "", *_group(group)]
    return "\n".join(lines) + "\n"


def _group(group: Group) -> Iterator[str]:
    yield f"class {group.name}(Calls):"
    for at, call in enumerate(group.calls):
        if at:
            yield ""
        yield from _methods(call)


def scopes(top: Scope) -> str:
    """The module of the client and of what lies below it, asynchronous."""
    names = ", ".join(sorted(distinct_groups(top)))
    lines = _head(
        '"""The client, and what lies below a subscription, resource group, server or job account."""',
        "from muster_sdk.aio._calls import Calls, Connection",
        f"from muster_sdk.aio._groups import ({names})",
    )
    for each in every(top):
        lines += ["", "", *_scope(each, top)]
    return "\n".join(lines) + "\n"


def _scope(one: Scope, top: Scope) -> Iterator[str]:
    base = "Connection" if one is top else "Calls"
    yield f"class {one.client}({base}):"
    yield f'    """{naming.ABOUT[one.name]}"""'
    for group in one.groups:
        yield ""
        yield "    @property"
        yield f"    def {group.attribute}(self) -> {group.name}:"
        yield f"        return {group.name}(self._transport, self._path)"
    for inner in one.inner:
        yield ""
        yield f"    def {inner.noun}(self, name: str) -> {inner.client}:"
        path = re.sub(r"{\w+}", "{self._quote(name)}", inner.segment)
        yield f'        return {inner.client}(self._transport, self._path + f"{path}")'
    for below in every(top)[:-1] if one is top else ():
        if below.noun not in {inner.noun for inner in one.inner}:
            yield ""
            yield f"    def {below.noun}(self, id: str) -> {below.client}:"
            yield '        """By its resource id, as answers have it: `/subscriptions/…`."""'
            yield f'        return {below.client}(self._transport, self._place(id, "{below.path}"))'
    for call in one.calls:
        yield ""
        yield from _methods(call)


def _methods(call: Call) -> Iterator[str]:
    operation = call.operation
    name = ("begin_" if operation.kind == "long" else "") + operation.method
    yield from _method(call, name, operation.kind)
    if operation.starts:
        yield ""
        yield from _method(call, f"begin_{operation.method}", "execution")
    if operation.formats:
        yield ""
        yield from _method(call, operation.method.replace("get_", "download_"), "download")


def _method(call: Call, name: str, kind: str) -> Iterator[str]:
    operation = call.operation
    gives = _type(operation.gives) if operation.gives else "None"
    if operation.unwrap and kind == "call":
        gives = f"builtins.list[{gives}]"
    shown = {
        "page": f"Pager[{gives}]", "parts": f"Pager[{gives}]", "long": f"OperationPoller[{gives}]",
        "execution": "ExecutionPoller", "stream": "EventStream", "download": "Download", "exists": "bool",
    }.get(kind, gives)  # fmt: skip
    lazy = kind in {"page", "parts", "stream", "download"}
    begin = f"    {'' if lazy else 'async '}def {name}("
    parameters = ["self", *_signature(call, kind)]
    yield f"{begin}{', '.join(parameters)}) -> {shown}:"
    yield from _docstring(call, kind)
    arguments = [
        f'"{operation.http}"' if kind not in {"page", "parts", "stream", "download"} else "",
        _path(call.path, operation),
        (_type(operation.gives) if operation.gives else "type(None)")
        if kind not in {"stream", "download", "exists"}
        else "",
    ]
    arguments = [each for each in arguments if each] + list(_given(operation, kind))
    helper = {
        "call": "_call",
        "page": "_pages",
        "parts": "_parts",
        "long": "_begin",
        "stream": "_events",
    }.get(kind, f"_{kind}")
    if operation.unwrap and kind == "call":
        helper = "_listed"
    yield f"        return {'' if lazy else 'await '}self.{helper}({', '.join(arguments)})"


def _signature(call: Call, kind: str) -> Iterator[str]:
    operation = call.operation
    for each in _path_parameters(call):
        yield f"{each.name}: {'int' if each.type.kind == 'integer' else 'str'}"
    if operation.body:
        yield f"{naming.snake(operation.body.name).removesuffix('_update')}: {operation.body.name} | Mapping[str, Any]"
    required = [each for each in _others(operation) if each.required]
    for each in required:
        yield f"{_argument(each)}: {_input(each.type)}"
    optional = [each for each in _others(operation) if not each.required]
    if optional or kind == "download":
        yield "*"
    if kind == "download":
        yield f'format: Literal[{_texts(operation.formats)}] = "csv"'
    for each in optional:
        yield f"{_argument(each)}: {_input(each.type)} | None = None"


def _given(operation: Operation, kind: str) -> Iterator[str]:
    if operation.body:
        yield f"body={naming.snake(operation.body.name).removesuffix('_update')}"
    for place in ("body", "query", "header"):
        items = [
            f'"{each.wire}": {_argument(each)}'
            for each in _others(operation)
            if each.place == place
        ]
        if kind == "download" and place == "query":
            items = ['"format": format', *(each for each in items if '"$' not in each)]
        if items:
            given = {"header": "headers", "body": "fields"}.get(place, place)
            yield f"{given}={{{', '.join(items)}}}"


def _docstring(call: Call, kind: str) -> Iterator[str]:
    operation = call.operation
    about = {
        "execution": f"{operation.about} The poller ends when the execution has ended.",
        "download": f"{operation.about} As a file with all rows.",
    }.get(kind, operation.about)
    described = [each for each in _others(operation) if each.about]
    if not described:
        yield f'        """{about}"""'
        return
    yield f'        """{about}'
    yield ""
    for each in described:
        yield from _wrapped(f"{_argument(each)}: {each.about}", "        ")
    yield '        """'


def _path_parameters(call: Call) -> list[Parameter]:
    names = call.names
    return [
        each for each in call.operation.parameters if each.place == "path" and each.wire in names
    ]


def _others(operation: Operation) -> list[Parameter]:
    return [each for each in operation.parameters if each.place != "path"]


def _path(path: str, operation: Operation) -> str:
    names = {each.wire: each.name for each in operation.parameters}
    text = re.sub(r"{(\w+)}", lambda match: f"{{self._quote({names[match[1]]})}}", path)
    return f'f"{text}"' if "{" in text else f'"{text}"'


def _argument(parameter: Parameter) -> str:
    return f"{parameter.name}_" if keyword.iskeyword(parameter.name) else parameter.name


def _attribute(wire: str) -> str:
    name = naming.snake(wire)
    return f"{name}_" if keyword.iskeyword(name) else name


def _type(type: Type) -> str:
    match type.kind:
        case "array":
            return f"builtins.list[{_type(type.of)}]" if type.of else "builtins.list[Any]"
        case "map":
            return f"dict[str, {_type(type.of)}]" if type.of else "dict[str, Any]"
        case "model" | "words":
            return type.name
        case _:
            return TYPES[type.kind]


def _input(type: Type) -> str:
    """What an argument may be: any sequence, and models as mappings too."""
    match type.kind:
        case "array":
            return f"Sequence[{_input(type.of)}]" if type.of else "Sequence[Any]"
        case "model":
            return f"{type.name} | Mapping[str, Any]"
        case _:
            return _type(type)


def _head(docstring: str, *imports: str) -> list[str]:
    return [
        docstring, "", "from __future__ import annotations", "", "import builtins",
        "from collections.abc import Mapping, Sequence", "from datetime import datetime",
        "from typing import Any, Literal", "", *imports, "from muster_sdk.aio._paging import Pager",
        "from muster_sdk.aio._polling import ExecutionPoller, OperationPoller",
        "from muster_sdk.aio._streams import Download, EventStream", "from muster_sdk.models import *",
    ]  # fmt: skip


def _texts(words: tuple[str, ...]) -> str:
    return ", ".join(f'"{each}"' for each in words)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text.replace("\\", "\\\\"), WIDTH, initial_indent=indent, subsequent_indent=indent + "    "
    )


SYNCHRONOUS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"muster_sdk\.aio\b", "muster_sdk.sync"),
    (r"from asyncio import sleep", "from time import sleep"),
    (r"httpx\.Async(\w+)", r"httpx.\1"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"StopAsyncIteration", "StopIteration"),
    (r"\b__a(iter|next|enter|exit)__\b", r"__\1__"),
    (r"\ba(iter_bytes|read|close)\b", r"\1"),
    (r"\banext\b", "next"),
]


def synchronous(text: str) -> str:
    """The same without coroutines."""
    for pattern, instead in SYNCHRONOUS:
        text = re.sub(pattern, instead, text)
    return text
