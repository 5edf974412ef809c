"""The TypeScript SDK: models, groups and scopes as source text; the runtime beside them is written by hand."""

import re
import textwrap
from collections.abc import Iterator

from openapi.sdk import naming
from openapi.sdk.document import Field, Model, Models, Operation, Parameter, Type
from openapi.sdk.layout import Call, Group, Scope, distinct_groups, envelope, every, used

TYPES = {
    "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "time": "string",
    "any": "unknown",
}  # fmt: skip
LAZY = {"page": "_pages", "parts": "_parts", "stream": "_events", "download": "_download"}
WIDTH = 100
SENT = "Date | string"  # a time that is given; answers have it as text


def models(models: Models, operations: tuple[Operation, ...]) -> str:
    """The module of all models."""
    classes, words = used(models, operations)
    lines = [
        "// What operations take and give. Fields that are undefined are not sent; null is.",
        "",
        "/** A resource to be sent: what the API shows of every resource need not be given. */",
        "export type Given<T extends { id: string; name: string; type: string }> =",
        '  Omit<T, "id" | "name" | "type"> & Partial<Pick<T, "id" | "name" | "type">>;',
    ]
    for name in words:
        known = " | ".join(f'"{each}"' for each in models.words[name])
        lines += ["", f"export type {name} = {known} | (string & {{}});"]
    for each in classes:
        lines += ["", *_model(each)]
    return "\n".join(lines) + "\n"


def _model(model: Model) -> Iterator[str]:
    yield f"export interface {model.name} {{"
    for each in model.fields:
        if each.about:
            yield from _comment([each.about], "  ")
        yield f"  {_field(each)};"
    yield "}"


def _field(field: Field) -> str:
    type = _type(field.type)
    if field.required or envelope(field):
        return f"{'' if field.required else 'readonly '}{field.wire}: {type}"
    if field.read_only:
        return f"readonly {field.wire}?: {type}"
    return f"{field.wire}?: {type} | null | undefined"


def clients(models: Models, top: Scope) -> str:
    """The module of groups and clients."""
    lines = [
        'import { Calls } from "./calls.js";',
        'import type * as models from "./models.js";',
        'import type { Pager } from "./paging.js";',
        'import type { ExecutionPoller, OperationPoller } from "./polling.js";',
        'import type { Download, EventStream } from "./streams.js";',
        'import { Transport, type CallOptions, type ClientOptions } from "./transport.js";',
        'import { write } from "./wire.js";',
    ]
    for group in distinct_groups(top).values():
        lines += ["", *_group(models, group)]
    for scope in every(top):
        lines += ["", *_scope(models, scope, top)]
    return "\n".join(lines) + "\n"


def _group(models: Models, group: Group) -> Iterator[str]:
    yield f"export class {group.name} extends Calls {{"
    for call in group.calls:
        yield from _methods(models, call)
    yield "}"


def _scope(models: Models, one: Scope, top: Scope) -> Iterator[str]:
    yield f"/** {naming.ABOUT[one.name]} */"
    yield f"export class {one.client} extends Calls {{"
    if one is top:
        yield "  constructor(url: string, options: ClientOptions) {"
        yield '    super(new Transport(url, options), "");'
        yield "  }"
    for group in one.groups:
        yield f"  get {naming.camel(group.attribute)}(): {group.name} {{"
        yield f"    return new {group.name}(this._transport, this._path);"
        yield "  }"
    for inner in one.inner:
        path = re.sub(r"{\w+}", "${this._quote(name)}", inner.segment)
        yield f"  {naming.camel(inner.noun)}(name: string): {inner.client} {{"
        yield f"    return new {inner.client}(this._transport, `${{this._path}}{path}`);"
        yield "  }"
    for below in every(top)[:-1] if one is top else ():
        if below.noun not in {inner.noun for inner in one.inner}:
            yield "  /** By its resource id, as answers have it: `/subscriptions/…`. */"
            yield f"  {naming.camel(below.noun)}(id: string): {below.client} {{"
            yield f'    return new {below.client}(this._transport, this._place(id, "{below.path}"));'
            yield "  }"
    for call in one.calls:
        yield from _methods(models, call)
    yield "}"


def _methods(models: Models, call: Call) -> Iterator[str]:
    operation = call.operation
    name = ("begin_" if operation.kind == "long" else "") + operation.method
    yield from _method(models, call, name, operation.kind)
    if operation.starts:
        yield from _method(models, call, f"begin_{operation.method}", "execution")
    if operation.formats:
        yield from _method(models, call, operation.method.replace("get_", "download_"), "download")


def _method(models: Models, call: Call, name: str, kind: str) -> Iterator[str]:
    operation = call.operation
    given = _type(operation.gives, "models.") if operation.gives else "void"
    if operation.unwrap and kind == "call":
        given += "[]"
    shown = {
        "page": f"Pager<{given}>", "parts": f"Pager<{given}>", "long": f"OperationPoller<{given}>",
        "execution": "ExecutionPoller", "stream": "EventStream", "download": "Download", "exists": "boolean",
    }.get(kind, given)  # fmt: skip
    optional = [each for each in operation.parameters if each.place != "path" and not each.required]
    about = {
        "execution": f"{operation.about} The poller ends when the execution has ended.",
        "download": f"{operation.about} As a file with all rows.",
    }.get(kind, operation.about)
    described = [
        f"@param options.{naming.camel(each.name)} {each.about}" for each in optional if each.about
    ]
    yield from _comment([about, *described], "  ")
    signature = ", ".join([*_signature(models, call), _options(operation, optional, kind)])
    arguments = [_path(call.path, operation), _more(models, operation, kind)]
    if kind in LAZY:
        generic = f"<{given}>" if kind in {"page", "parts"} else ""
        yield f"  {naming.camel(name)}({signature}): {shown} {{"
        yield f"    return this.{LAZY[kind]}{generic}({', '.join(arguments)});"
    else:
        helper = {"long": "_begin", "exists": "_exists", "execution": "_execution"}.get(
            kind, "_call"
        )
        generic = {"_begin": f"<{given}>", "_call": f"<{given}>"}.get(helper, "")
        if operation.unwrap and kind == "call":
            helper, generic = "_listed", f"<{given.removesuffix('[]')}>"
        yield f"  async {naming.camel(name)}({signature}): Promise<{shown}> {{"
        yield f'    return await this.{helper}{generic}("{operation.http}", {", ".join(arguments)});'
    yield "  }"


def _signature(models: Models, call: Call) -> Iterator[str]:
    operation = call.operation
    for each in operation.parameters:
        if each.place == "path" and each.wire in call.names:
            yield f"{naming.camel(each.name)}: {_sent(each)}"
    if operation.body:
        body = _type(operation.body, "models.")
        shown = any(map(envelope, models.models[operation.body.name].fields))
        yield f"{_body_name(operation)}: {f'models.Given<{body}>' if shown else body}"
    for each in operation.parameters:
        if each.place != "path" and each.required:
            yield f"{naming.camel(each.name)}: {_sent(each)}"


def _options(operation: Operation, optional: list[Parameter], kind: str) -> str:
    members = [f"{naming.camel(each.name)}?: {_sent(each)} | undefined" for each in optional]
    if kind == "download":
        members.insert(0, "format?: " + " | ".join(f'"{each}"' for each in operation.formats))
    own = f"{{ {'; '.join(members)} }} & " if members else ""
    return f"options: {own}CallOptions = {{}}"


def _more(models: Models, operation: Operation, kind: str) -> str:
    """The last argument of a helper: all that is not in the path."""
    members = []
    if operation.body:
        name = _body_name(operation)
        members.append(
            f"body: write({name})"
            if models.models[operation.body.name].resource
            else f"body: {name}"
        )
    for place, member in (("body", "fields"), ("query", "query"), ("header", "headers")):
        items = [
            f'"{each.wire}": {naming.camel(each.name) if each.required else f"options.{naming.camel(each.name)}"}'
            for each in operation.parameters
            if each.place == place
        ]
        if kind == "download" and place == "query":
            items = [
                '"format": options.format ?? "csv"',
                *(each for each in items if '"$' not in each),
            ]
        if items:
            members.append(f"{member}: {{ {', '.join(items)} }}")
    return f"{{ {', '.join([*members, 'signal: options.signal'])} }}"


def _body_name(operation: Operation) -> str:
    assert operation.body
    return naming.camel(naming.snake(operation.body.name).removesuffix("_update"))


def _path(path: str, operation: Operation) -> str:
    names = {each.wire: naming.camel(each.name) for each in operation.parameters}
    text = re.sub(r"{(\w+)}", lambda match: f"${{this._quote({names[match[1]]})}}", path)
    return f"`{text}`" if "$" in text else f'"{text}"'


def _type(type: Type, prefix: str = "") -> str:
    match type.kind:
        case "array":
            return f"{_type(type.of, prefix)}[]" if type.of else "unknown[]"
        case "map":
            return (
                f"Record<string, {_type(type.of, prefix)}>"
                if type.of
                else "Record<string, unknown>"
            )
        case "model" | "words":
            return f"{prefix}{type.name}"
        case _:
            return TYPES[type.kind]


def _sent(parameter: Parameter) -> str:
    return SENT if parameter.type.kind == "time" else _type(parameter.type, "models.")


def _comment(texts: list[str], indent: str) -> Iterator[str]:
    lines = [
        line
        for text in texts
        for line in textwrap.wrap(text.replace("*/", "* /"), WIDTH - len(indent) - 3)
    ]
    if len(lines) == 1:
        yield f"{indent}/** {lines[0]} */"
        return
    yield f"{indent}/**"
    yield from (f"{indent} * {line}" for line in lines)
    yield f"{indent} */"
