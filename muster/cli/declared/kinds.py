"""What a document may state: the properties of REST in its spelling; a test compares them with the API's document."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

MARK = "muster.applied"  # label of the jobs that `muster apply` created


@dataclass(frozen=True, kw_only=True)
class Field:
    TAKES: ClassVar[dict[str, Callable[[str], Any]]] = {}  # type of YAML → what is made of its text

    removable: bool = False  # null is possible: REST then shows nothing
    default: Any = None  # of REST, where saying it is the same as saying nothing
    folded: bool = False  # case does not count

    @property
    def expected(self) -> str:
        return "fields"

    def fits(self, _: Any) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    TAKES: ClassVar = {"str": str}

    is_time: bool = False

    @property
    def expected(self) -> str:
        return "a time with its zone, such as 2031-01-01T02:00:00Z" if self.is_time else "a text"

    def fits(self, value: str) -> bool:
        return not self.is_time or is_instant(value)


class Flag(Field):
    TAKES: ClassVar = {"bool": "true".__eq__}
    expected = "true or false"


class Integer(Field):
    TAKES: ClassVar = {"int": int}
    expected = "a whole number"


class Number(Field):
    TAKES: ClassVar = {"int": int, "float": float}
    expected = "a number"


class Scalar(Field):
    TAKES: ClassVar = {"str": str, **Flag.TAKES, **Number.TAKES}
    expected = "a text, a number or true or false"


@dataclass(frozen=True, kw_only=True)
class Word(Field):
    TAKES: ClassVar = {"str": str, "bool": str}  # `true` is a word of verify.expect

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return self.words[0] if len(self.words) == 1 else f"one of {', '.join(self.words)}"

    def fits(self, value: str) -> bool:
        return value in self.words


@dataclass(frozen=True, kw_only=True)
class Reference(Field):
    """The name of another resource of the account, or its id."""

    TAKES: ClassVar = {"str": str}

    collection: str

    @property
    def expected(self) -> str:
        return "a name"


@dataclass(frozen=True, kw_only=True)
class Array(Field):
    of: Field
    ordered: bool = True

    @property
    def expected(self) -> str:
        return f"a list ({self.of.expected}, …)"


class Labels(Field):
    """Names and texts; whole, as an array is."""

    expected = "names with texts"


@dataclass(frozen=True, kw_only=True)
class Object(Field):
    fields: dict[str, Field]
    required: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    name: str  # as `kind:` has it
    noun: str  # as the command line and messages have it
    collection: str
    properties: Object
    secret: str = ""  # write-only property; NAMEFile and NAMEEnv say where it is
    more: tuple[str, ...] = ()  # fields of the document beside the properties


GROUP = Reference(collection="targetGroups")
CREDENTIAL = Reference(collection="credentials", removable=True)

SCHEDULE = Object(
    fields={
        "type": Word(words=("Once", "Recurring")),
        "enabled": Flag(),
        "cron": Text(),
        "timeZone": Text(),
        "interval": Text(),
        "startTime": Text(is_time=True),
        "endTime": Text(is_time=True),
        "overlap": Word(
            words=("skipTarget", "skipExecution", "queueOne", "allow", "cancelPrevious")
        ),
        "misfire": Object(
            fields={
                "policy": Word(words=("runOnce", "skip")),
                "withinSeconds": Integer(removable=True),
            }
        ),
    }
)
RUN_ATTEMPTS = Object(
    removable=True,
    required=("enabled",),
    fields={
        "enabled": Flag(),
        "maxSuccessiveWithoutProgress": Integer(removable=True),
        "maxWithoutProgress": Integer(removable=True),
        "maxWithProgress": Integer(removable=True),
        "backoffSeconds": Array(of=Integer(), removable=True),
    },
)
AUTO_DISABLE = Object(
    removable=True,
    fields={
        "failures": Integer(removable=True),
        "days": Number(removable=True),
        "warningFailures": Integer(removable=True),
        "warningDays": Number(removable=True),
    },
)
STEP = Object(
    required=("targetGroup", "action"),
    fields={
        "targetGroup": GROUP,
        "credential": CREDENTIAL,
        "action": Object(
            required=("value",),
            fields={
                "type": Word(words=("TSql",), default="TSql"),
                "source": Word(words=("Inline",), default="Inline"),
                "value": Text(),
            },
        ),
        "executionOptions": Object(
            fields={
                "timeoutSeconds": Integer(),
                "retryAttempts": Integer(),
                "initialRetryIntervalSeconds": Integer(),
                "maximumRetryIntervalSeconds": Integer(),
                "retryIntervalBackoffMultiplier": Number(),
                "maxParallelism": Integer(removable=True),
            }
        ),
        "transaction": Word(words=("auto", "none"), removable=True),
        "settings": Object(
            removable=True,
            fields={
                "lockTimeoutSeconds": Number(removable=True),
                "role": Text(removable=True),
                "searchPath": Text(removable=True),
                "access": Word(words=("readWrite", "readOnly", "preferStandby"), removable=True),
                "parameters": Labels(removable=True),
            },
        ),
        "advance": Word(words=("barrier", "perTarget"), removable=True),
        "onFailure": Word(words=("stop", "continue"), removable=True),
        "rollout": Object(
            removable=True,
            required=("waves",),
            fields={
                "waves": Array(of=Scalar()),
                "orderBy": Text(removable=True),
                "haltAfterFailures": Scalar(removable=True),
                "pauseBetween": Text(removable=True),
                "gate": Word(words=("auto", "manual"), removable=True),
            },
        ),
        "verify": Object(
            removable=True,
            required=("sql",),
            fields={
                "sql": Text(),
                "expect": Word(words=("nonEmpty", "empty", "true", "value"), removable=True),
                "value": Scalar(removable=True),
                "skipIfHolds": Flag(removable=True),
                "timeoutSeconds": Integer(removable=True),
            },
        ),
        "guard": Scalar(removable=True),
        "idempotent": Flag(removable=True),
        "retryOn": Array(of=Text(), removable=True),
        "allowEmpty": Flag(removable=True),
        "slotsPerDatabase": Integer(removable=True),
        "jitter": Number(removable=True),
        "output": Object(
            removable=True,
            required=("serverName", "databaseName", "tableName"),
            fields={
                "type": Word(words=("SqlDatabase",), default="SqlDatabase"),
                "subscriptionId": Text(removable=True),
                "resourceGroupName": Text(removable=True),
                "serverName": Text(folded=True),
                "databaseName": Text(),
                "schemaName": Text(),
                "tableName": Text(),
                "credential": CREDENTIAL,
                "includeTarget": Flag(removable=True),
                "onMismatch": Word(words=("fail", "addColumn"), removable=True),
            },
        ),
    },
)
JOB = Kind(
    name="job",
    noun="job",
    collection="jobs",
    more=("steps",),
    properties=Object(
        fields={
            "description": Text(),
            "owner": Text(removable=True),
            "labels": Labels(),
            "paused": Flag(),
            "priority": Integer(),
            "retentionDays": Integer(removable=True),
            "schedule": SCHEDULE,
            "runAttempts": RUN_ATTEMPTS,
            "autoDisable": AUTO_DISABLE,
        }
    ),
)
MEMBER = Object(
    required=("type",),
    fields={
        "type": Word(
            words=(
                "TargetGroup",
                "SqlDatabase",
                "SqlElasticPool",
                "SqlShardMap",
                "SqlServer",
                "SqlSchema",
                "SqlQuery",
            )
        ),
        "membershipType": Word(words=("Include", "Exclude"), default="Include"),
        "serverName": Text(folded=True),
        "databaseName": Text(),
        "elasticPoolName": Text(folded=True),
        "shardMapName": Text(),
        "schemaPattern": Text(),
        "targetGroup": GROUP,
        "labels": Text(),
        "query": Text(),
        "refreshCredential": Reference(collection="credentials"),
        "credential": Reference(collection="credentials"),
        "subscriptionId": Text(folded=True),
        "resourceGroupName": Text(folded=True),
    },
)
TARGET_GROUP = Kind(
    name="targetGroup",
    noun="group",
    collection="targetGroups",
    properties=Object(required=("members",), fields={"members": Array(of=MEMBER)}),
)
CREDENTIALS = Kind(
    name="credential",
    noun="credential",
    collection="credentials",
    secret="password",  # noqa: S106 - the name of a field
    more=("passwordFile", "passwordEnv"),
    properties=Object(
        required=("username",),
        fields={
            "username": Text(),
            "reference": Text(),
            "servers": Array(of=Text(folded=True), ordered=False),
        },
    ),
)
WEBHOOK = Kind(
    name="webhook",
    noun="webhook",
    collection="webhooks",
    secret="secret",  # noqa: S106 - the name of a field
    more=("secretFile", "secretEnv"),
    properties=Object(
        required=("url", "events"),
        fields={
            "url": Text(),
            "events": Array(
                ordered=False,
                of=Word(
                    words=(
                        "failed",
                        "succeeded",
                        "recovered",
                        "late",
                        "missed",
                        "halted",
                        "autoDisableWarning",
                        "autoDisabled",
                    )
                ),
            ),
            "jobs": Array(of=Text(folded=True), ordered=False),
            "enabled": Flag(),
            "maxAttempts": Integer(),
        },
    ),
)
KINDS = {each.name: each for each in (CREDENTIALS, TARGET_GROUP, JOB, WEBHOOK)}  # written in order


def is_instant(text: str) -> bool:
    """A time whose zone is said."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
