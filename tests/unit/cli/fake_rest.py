"""A REST API of recorded answers, behind the real client: paths, shapes, ETags, pages and operations.

rest = Rest()
rest.on("GET", f"{ACCOUNT}/jobs", listed(a_job()))
rest.on("POST", path, refusal(403, "AuthorizationFailed", "No."))
rest.on("GET", summary, first, second)        # one after the other; the last one stays
rest.on("GET", results, sets(first, second))  # what is there of what ?set= asks for
rest.sent("PUT", path)                        # the bodies that came
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import httpx

SUBSCRIPTION = "/subscriptions/s1"
SERVER = f"{SUBSCRIPTION}/resourceGroups/g1/providers/Microsoft.Sql/servers/fleet-1"
ACCOUNT = f"{SERVER}/jobAgents/demo"
JOB = f"{ACCOUNT}/jobs/nightly"
RUN_ID = "3f2a1c9e-1111-4111-8111-111111111111"
RUN = f"{JOB}/executions/{RUN_ID}"


class Rest:
    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self._answers: dict[tuple[str, str], list[Any]] = {}
        self.on("GET", "/subscriptions", listed({"id": SUBSCRIPTION, "name": "s1"}))
        self.on("GET", f"{SUBSCRIPTION}/providers/Microsoft.Sql/servers", listed(a_server()))
        self.on("GET", f"{SERVER}/jobAgents", listed(an_account()))

    def on(self, method: str, path: str, *answers: Any) -> None:
        self._answers[method, path.lower()] = list(answers)

    def sent(self, method: str, path: str) -> list[Any]:
        return [
            json.loads(each.content) if each.content else None
            for each in self.requests
            if each.method == method and each.url.path == path
        ]

    def asked(self, path: str) -> list[dict[str, str]]:
        """The queries that came, without the version."""
        return [
            {name: value for name, value in each.url.params.items() if name != "api-version"}
            for each in self.requests
            if each.url.path == path
        ]

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        assert request.headers["authorization"] == "Bearer a-token"
        assert request.url.params.get("api-version"), request.url
        answers = self._answers.get((request.method, request.url.path.lower()))
        if not answers:
            what = f"{request.method} {request.url.path}"
            return refusal(404, "ResourceNotFound", f"There is no {what}.")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if callable(answer):
            answer = answer(request.url.params)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response) and not answer.is_stream_consumed:
            return answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(
                answer.status_code, headers=answer.headers, content=answer.content
            )
        return _answered(request, answer)


def _answered(request: httpx.Request, document: Any) -> httpx.Response:
    content = json.dumps(document).encode()
    etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
    if request.headers.get("if-none-match") == etag:
        return httpx.Response(304)
    return httpx.Response(200, headers={"etag": etag}, content=content)


def refusal(
    status: int, code: str, message: str, target: str | None = None, **more: Any
) -> httpx.Response:
    error = {"code": code, "message": message, "target": target, **more}
    headers = {"retry-after": "7"} if status in {429, 503} else {}
    return httpx.Response(status, json={"error": error}, headers=headers)


def accepted(operation: str, document: Any) -> httpx.Response:
    link = f"https://elsewhere{operation}?api-version=2025-01-01"
    return httpx.Response(201, json=document, headers={"azure-asyncoperation": link})


def listed(*items: Any, next: str | None = None) -> dict[str, Any]:
    page: dict[str, Any] = {"value": list(items)}
    if next:
        page["nextLink"] = f"https://elsewhere{next}"
    return page


def a_server(name: str = "fleet-1", **properties: Any) -> dict[str, Any]:
    endpoint = {"host": "127.0.0.1", "port": 20001, "sslMode": "disable"}
    said = {"endpoint": endpoint, "state": "Ready", "serverVersion": "17.2", "maxConnections": 10}
    path = SERVER.rpartition("/")[0]
    return {"id": f"{path}/{name}", "name": name, "properties": said | properties}


def an_account(name: str = "demo", server: str = "fleet-1", **properties: Any) -> dict[str, Any]:
    instance = {"version": "0.1.0", "lastHeartbeat": "2031-01-01T00:00:00.123456Z"}
    said = {"state": "Ready", "paused": False, "instance": instance}
    path = SERVER.rpartition("/")[0]
    return {
        "id": f"{path}/{server}/jobAgents/{name}",
        "name": name,
        "sku": {"name": "JA100", "capacity": 100},
        "properties": said | properties,
    }


def a_run(
    id: str = RUN_ID, job: str = "nightly", lifecycle: str = "Created", **properties: Any
) -> dict[str, Any]:
    said = {"lifecycle": lifecycle, "createTime": "2031-01-01T00:00:00Z", "jobExecutionId": id}
    path = f"{ACCOUNT}/jobs/{job}/executions/{id}"
    return {"id": path, "name": id, "properties": said | properties}


def a_summary(lifecycle: str = "Succeeded", **more: Any) -> dict[str, Any]:
    """Counts are given by lifecycle: Succeeded=3."""
    counts = {name: more.pop(name) for name in list(more) if name[0].isupper()}
    over = {"Succeeded", "Failed", "TimedOut", "Canceled", "Skipped", "SucceededWithSkipped"}
    total = sum(counts.values())
    done = sum(number for name, number in counts.items() if name in over)
    step = {"stepId": 1, "stepName": "main", "lifecycle": lifecycle, "counts": counts}
    summary = {
        "jobExecutionId": RUN_ID,
        "jobName": "nightly",
        "lifecycle": lifecycle,
        "createTime": "2031-01-01T00:00:00Z",
        "counts": counts,
        "total": total,
        "done": done,
        "steps": [{**step, "total": total, "done": done}],
        "byServer": [],
        "byReason": [],
    }
    return summary | more


def a_page(*rows: list[Any], **more: Any) -> dict[str, Any]:
    """Of results with the one column n; without rows: no target returned rows."""
    where = ["serverName", "databaseName", "schemaName"]
    page = {"stepName": "main", "set": 1, "columns": [*where, "n"] if rows else where}
    return page | {"rows": list(rows), "targets": 2, "truncated": False} | more


def sets(*pages: dict[str, Any]) -> Callable[[httpx.QueryParams], dict[str, Any]]:
    """Results that are told by ?set=; beyond them nothing is there."""

    def told(query: httpx.QueryParams) -> dict[str, Any]:
        number = int(query.get("set", 1))
        page = pages[number - 1] if number <= len(pages) else a_page()
        return page | {"set": number}

    return told


def file(body: str, *, truncated: int = 0) -> httpx.Response:
    """Rows as a stream; a body without its end is one that broke off."""
    return httpx.Response(
        200, headers={"muster-truncated-targets": str(truncated)}, content=body.encode()
    )


def with_files(page: Any, **files: httpx.Response) -> Callable[[httpx.QueryParams], Any]:
    """Results: `page` as JSON, and the files by ?format=."""
    return lambda query: files[query["format"]] if "format" in query else page


def a_target(database: str, lifecycle: str = "Succeeded", **properties: Any) -> dict[str, Any]:
    server = properties.pop("server", "fleet-1")
    target = {"type": "SqlDatabase", "serverName": server, "databaseName": database}
    said = {
        "stepId": 1,
        "stepName": "main",
        "lifecycle": lifecycle,
        "targetId": f"id-of-{database}",
        "target": target,
        "currentAttempts": 1,
    }
    return {"name": f"id-of-{database}", "properties": said | properties}


def a_cause(sqlstate: str | None, count: int, message: str, **more: Any) -> dict[str, Any]:
    where = {"stepName": "main", "targetId": "t", "serverName": "fleet-1", "attempts": 1}
    targets = [{**where, "databaseName": "tenant_07"}]
    told = {"message": message, "count": count, "retrying": 0, "targets": targets}
    return {**told, **({"sqlstate": sqlstate} if sqlstate else {}), **more}
