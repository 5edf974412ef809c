"""Files are read strictly: what is wrong is told with file, line and field, everything at once."""

import io
import sys

import pytest

from muster.cli.client import Refused
from muster.cli.declared.document import Wrong
from muster.cli.declared.reader import read

JOB = """\
kind: job
name: nightly
schedule: {cron: "30 3 * * *", timeZone: Europe/Berlin, enabled: true, startTime: 2031-01-01T00:00:00Z}
labels: {tier: gold, "on": off}
steps:
  - name: vacuum
    targetGroup: tenants
    action:
      value: |
        vacuum;
        analyze
    verify: {sql: select true, expect: true}
    rollout: {waves: [1, 5%], haltAfterFailures: 2}
    guard: job
    credential: null
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="a.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


def problems(file, text):
    path = file(text)
    with pytest.raises(Wrong) as wrong:
        read([path])
    return [each.removeprefix(f"{path}:") for each in wrong.value.problems]


def test_a_document_has_the_values_of_rest(file):
    (job,) = read([file(JOB)])

    assert (job.kind.name, job.name) == ("job", "nightly")
    assert job.properties["schedule"] == {
        "cron": "30 3 * * *", "timeZone": "Europe/Berlin", "enabled": True, "startTime": "2031-01-01T00:00:00Z",
    }  # fmt: skip
    assert job.properties["labels"] == {"tier": "gold", "on": "off"}, "no word but true is true"
    (step,) = job.steps
    assert step.properties == {
        "targetGroup": "tenants", "action": {"value": "vacuum;\nanalyze\n"}, "guard": "job", "credential": None,
        "verify": {"sql": "select true", "expect": "true"}, "rollout": {"waves": [1, "5%"], "haltAfterFailures": 2},
    }  # fmt: skip
    assert job.place("steps[0].rollout.waves[1]").endswith("a.yaml:13")
    assert job.place("steps[0].output.tableName").endswith("a.yaml:6"), "the nearest one around it"


def test_folders_stdin_and_several_documents(file, tmp_path, monkeypatch):
    file(
        "kind: group\nname: b\nmembers: []\n---\n\n---\nkind: target-group\nname: c\n", "sub/2.yml"
    )
    file("kind: job\nname: a\n", "1.yaml")
    file("kind: job\nname: [}\n", ".git/x.yaml")
    file("no YAML {", "notes.txt")
    monkeypatch.setattr(sys, "stdin", io.StringIO("kind: job\nname: d\n"))

    documents = read([str(tmp_path), "-"])

    assert [each.title for each in documents] == ["job a", "group b", "group c", "job d"]


def test_a_script_may_be_a_file_beside(file):
    file("select 1\n", "sql/a.sql")
    step = "kind: job\nname: a\nsteps:\n  - {name: s, commandFile: sql/a.sql}\n"

    (job,) = read([file(step)])
    wrong = problems(file, step.replace("a.sql}", "b.sql, action: {value: x}}"))

    assert job.steps[0].properties == {"action": {"value": "select 1\n"}}
    assert "4: steps[0].commandFile: state either commandFile or action" in wrong
    assert any("b.sql can't be read" in each for each in wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: jb\nname: a", "1: kind: there is no kind 'jb'; did you mean job?"),
        ("name: a", "1: kind: it is missing: one of credential, targetGroup, job, webhook"),
        ("kind: job", "1: name: it is missing"),
        ("kind: job\nname: ''", "2: name: it is empty"),
        ("kind: job\nname: 7", "2: name: expected a text, not '7'; in quotes it is a text: \"7\""),
        ("kind: job\nname: a\nname: b", "3: name: it is stated in line 2 already"),
        ("kind: job\nname: a\ndescripton: x", "3: descripton: there is no such field; did you mean description?"),
        ("kind: job\nname: a\nversion: 3", "3: version: there is no such field; only the API sets it: leave it out"),
        ("kind: job\nname: a\nproperties: {}", "3: properties: there is no such field; they stand beside kind and name: leave this level out"),
        ("kind: job\nname: a\npaused: yes", "3: paused: expected true or false, not 'yes'"),
        ("kind: job\nname: a\npaused: null", "3: paused: null is not possible, expected true or false"),
        ("kind: job\nname: a\nlabels: [a]", "3: labels: expected fields, not a list"),
        ("kind: job\nname: a\nlabels: {muster.applied: x}", "3: labels: 'muster.applied' is set by muster apply: leave it out"),
        ("kind: job\nname: a\nschedule: {type: once}", "3: schedule.type: expected one of Once, Recurring, not 'once'; did you mean Once?"),
        ("kind: job\nname: a\nschedule: {startTime: 2031-01-01T00:00:00}", "3: schedule.startTime: expected a time with its zone, such as 2031-01-01T02:00:00Z, not '2031-01-01T00:00:00'"),
        ("kind: job\nname: a\nsteps: x", "3: steps: expected a list of steps, not 'x'"),
        ("kind: job\nname: a\nsteps:\n- name: s\n- name: S", "5: steps[1].name: 'S' is there twice"),
        ("kind: job\nname: a\nsteps:\n- {name: s, stepId: 1}", "4: steps[0].stepId: there is no such field; a step's number is its place in the list: leave it out"),
        ("kind: job\nname: a\nsteps:\n- {name: s, command: x}", "4: steps[0].command: there is no such field; SQL stands in action.value, or in the file that commandFile names"),
        ("kind: job\nname: a\nsteps:\n- {name: s, executionOptions: {retryAttempts: 1.5}}", "4: steps[0].executionOptions.retryAttempts: expected a whole number, not '1.5'"),
        ("kind: group\nname: a\nmembers: {}", "3: members: expected a list (fields, …), not fields"),
        ("kind: group\nname: a\nmembers:\n- type: SqlSrever", "4: members[0].type: expected one of TargetGroup, SqlDatabase, SqlElasticPool, SqlShardMap, SqlServer, SqlSchema, SqlQuery, not 'SqlSrever'; did you mean SqlServer?"),
        ("kind: credential\nname: a\npasswordEnv: A\npasswordFile: b", "3: passwordEnv: state either passwordFile or passwordEnv"),
        ("kind: credential\nname: a\npasswordEnv: A\nreference: env:B", "1: state either reference or passwordFile or passwordEnv"),
        ("kind: job\nname: !!binary aGk=", "2: name: expected a text, not 'aGk='"),
        ("kind: job\nname: !secret x", "2: name: expected a text, not a value with the tag !secret"),
        ("kind: job\nname: a\n<<: {paused: true}", "3: <<: there is no such field; there are: "),
        ("- kind: job", "1: expected fields, not a list"),
        ("kind: job\nname: [a", "3: this is no YAML: expected ',' or ']', but got '<stream end>'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(file, text, said):
    (told,) = problems(file, text + "\n")

    assert told.startswith(said)


@pytest.mark.parametrize(("kind", "field"), [("credential", "password"), ("webhook", "secret")])
def test_a_secret_in_a_file_is_refused_and_not_repeated(file, kind, field):
    (told,) = problems(file, f"kind: {kind}\nname: a\n{field}: hush-hush\n")

    assert told == f"3: {field}: a secret does not belong in a file: use {field}File or {field}Env"


def test_everything_is_told_at_once_and_in_order(file):
    told = problems(file, "kind: job\nname: a\npaused: 1\nlabels: {a: 1}\n---\nkind: job\nnam: b\n")

    assert [each.partition(":")[0] for each in told] == ["3", "4", "6", "7"]


def test_one_thing_is_stated_once(file, tmp_path):
    first = file("kind: job\nname: a\n", "1.yaml")
    second = file("kind: group\nname: a\n---\nkind: job\nname: A\n", "2.yaml")

    with pytest.raises(Wrong) as wrong:
        read([first, second])

    assert wrong.value.problems == [f"{second}:4: job A is stated in {first}:1 already"]


def test_a_secret_is_read_from_where_it_is(file, tmp_path, monkeypatch):
    file("hush\n", "pw")
    text = "kind: credential\nname: a\nusername: u\npasswordFile: pw\n---\nkind: credential\nname: b\npasswordEnv: B_PASSWORD\n"
    by_file, by_variable = read([file(text)])

    assert by_file.secret.read() == "hush"
    with pytest.raises(Refused, match=r"a.yaml:8: the environment has no variable B_PASSWORD"):
        by_variable.secret.read()
    monkeypatch.setenv("B_PASSWORD", "word")
    assert by_variable.secret.read() == "word"


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing\n"])
def test_files_without_a_document_are_refused(file, text):
    with pytest.raises(Refused, match="there is no document in"):
        read([file(text)])


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="can't be read"):
        read([str(tmp_path / "none.yaml")])
    with pytest.raises(Refused, match=r"there is no file \*.yaml or \*.yml"):
        read([str(tmp_path)])
