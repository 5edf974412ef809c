"""Every error code that the code can answer, found in its syntax trees, with the statuses of its kinds of fault."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from api.errors import STATUS
from muster.core.errors import Fault
from nodeagent import sqlstates

ROOT = Path(__file__).parents[2]
PACKAGES = ("api", "workflows", "fsm", "nodeagent", "engine", "muster/core", "muster/roles")
CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z]?[a-z]+)*\Z")
KINDS = {kind.__name__: status for kind, status in STATUS.items()}
PLACES = {
    "FieldError": 2,
    "Problem": 1,
    "Problem.at": 2,
    "condition": 0,
}  # of a code without a name
NOT_ANSWERED = {"Finding"}  # of a check of rights: docs/reference/diagnosis.md


def found() -> dict[str, set[int]]:
    """Code → statuses that are certain; empty where only its use decides, as of a wrong field."""
    codes: dict[str, set[int]] = defaultdict(set)
    trees = {path: ast.parse(path.read_text("utf-8")) for path in files()}
    constants = {path: of_module(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        constants[path] |= imported(tree, constants)
        for call in ast.walk(tree):
            for code in of_literals(call):
                codes[code] |= set()
            if isinstance(call, ast.Call):
                name = ast.unparse(call.func).rpartition(".")[2]
                for code in given(call, name, constants[path], constants):
                    codes[code] |= {KINDS[name]} if name in KINDS else set()
                if name == "ProtocolFault" and len(call.args) > 1:
                    [code] = strings(call.args[1], constants[path], constants) or [""]
                    if code and isinstance(call.args[0], ast.Constant):
                        codes[code].add(call.args[0].value)
    for kind in Fault.__subclasses__():
        codes[kind.default_code].add(STATUS[kind])
    for kind, code in sql_meanings():
        codes[code].add(STATUS[kind])
    for code in of_sql_functions():
        codes[code] |= set()
    return codes


def files() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def of_module(tree: ast.Module) -> dict[str, str]:
    """Names that are assigned a text, also several at once."""
    pairs = [
        pair
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for pair in (
            zip(target.elts, node.value.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            else [(target, node.value)]
        )
    ]
    return {
        name.id: value.value
        for name, value in pairs
        if isinstance(name, ast.Name)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
    }


def imported(tree: ast.Module, constants: dict[Path, dict[str, str]]) -> dict[str, str]:
    """The constants of other modules of ours, by the names that they have here."""
    taken = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            theirs = constants.get(ROOT / (node.module.replace(".", "/") + ".py"), {})
            taken |= {a.asname or a.name: theirs[a.name] for a in node.names if a.name in theirs}
    return taken


def of_literals(node: ast.AST) -> Iterator[str]:
    """{"code": "…"}, and a parameter `code: str = "…"`."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "code":
                yield from strings(value, {}, {})
    if isinstance(node, ast.arguments):
        named = [
            *zip(reversed(node.args), reversed(node.defaults)),
            *zip(node.kwonlyargs, node.kw_defaults),
        ]
        for argument, default in named:
            if argument.arg == "code" and default is not None:
                yield from strings(default, {}, {})


def given(call: ast.Call, name: str, own: dict[str, str], others: dict) -> Iterator[str]:
    if name in NOT_ANSWERED:
        return
    for keyword in call.keywords:
        if keyword.arg in {"code", "absent"}:
            yield from strings(keyword.value, own, others)
    place = PLACES.get(ast.unparse(call.func).removeprefix("self."))
    if place is not None and len(call.args) > place:
        yield from strings(call.args[place], own, others)


def strings(node: ast.AST, own: dict[str, str], others: dict) -> list[str]:
    texts = []
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            texts.append(part.value)
        elif isinstance(part, ast.Name) and part.id in own:
            texts.append(own[part.id])
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            for path, constants in others.items():
                if path.stem == part.value.id and part.attr in constants:
                    texts.append(constants[part.attr])
    return [each for each in texts if CODE.match(each)]


def sql_meanings() -> list[sqlstates.Meaning]:
    tables = (sqlstates.EXACT, sqlstates.OWN, sqlstates.BY_CLASS)
    return [*(each for table in tables for each in table.values()), sqlstates.UNKNOWN]


def of_sql_functions() -> Iterator[str]:
    """The REST code that a function of the control database gives beside its SQLSTATE."""
    for path in (ROOT / "engine/sql/functions").rglob("*.sql"):
        text = path.read_text("utf-8")
        for call in re.findall(r"raise_error\((.*?)\);", text, re.DOTALL):
            yield from re.findall(r", '((?:[A-Z][a-z]+){2,})'\s*$", call)
        yield from re.findall(r"constraint = '((?:[A-Z][a-z]+)+)'", text)
