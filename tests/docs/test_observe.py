"""docs/how-to/observe.md: probes, a scrape with a token that only reads, alerts about metrics that exist, logs."""

import json
import re

import yaml

from api.metrics_reference import known, sample_name
from tests.docs.conftest import access
from tests.support.pages import page
from tests.support.shell import shell
from tests.support.stack import a_server, an_account

METRIC = re.compile(r"\bmuster_\w+")


def test_the_commands_show_what_they_say(tmp_path, muster):
    a_server(muster)
    an_account(muster, "nightly")
    own = {"http://127.0.0.1:8080": muster.url}
    logs = {"/var/lib/muster/logs": str(muster.folder / "logs")}
    with page("docs/how-to/observe.md") as told, shell(tmp_path, **access(muster)) as bash:
        live = bash.block(told.take("Probes").with_(own))
        assert [json.loads(text) for text in live.values()] == [{"status": "ok"}] * 2

        *_, scraped = bash.block(told.take("A token for Prometheus").with_(own)).values()
        assert "muster_metrics_complete 1.0" in scraped
        secret = tmp_path / "muster.token"
        assert secret.stat().st_mode & 0o777 == 0o600
        token = secret.read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        assert muster.client.get("/subscriptions/s1", headers=headers).status_code == 200
        assert muster.client.put("/subscriptions/s2", headers=headers, json={}).status_code == 403

        assert yaml.safe_load(told.take("Metrics").text)["scrape_configs"][0]["authorization"]
        alerts_are_about_metrics_that_exist(told.take("Alerts").text)

        files, errors, denied = bash.block(told.take("Logs").with_(logs)).values()
        assert {"api.log", "fsm.log", "launcher.log", "nodeagent.log"} <= set(files.split())
        assert errors == ""
        assert [json.loads(line)["why"] for line in denied.splitlines()] != []

        accounts, doctor, _ = bash.block(told.take("When something is wrong").text).values()
        assert "nightly" in accounts and "nightly" in doctor


def alerts_are_about_metrics_that_exist(text):
    samples = {sample_name(each) for each in known()}
    [group] = yaml.safe_load(text)["groups"]
    expressions = [rule["expr"] for rule in group["rules"]]

    used = {name for each in expressions for name in METRIC.findall(each)}

    assert len(used) > 8
    assert used - samples == set()
