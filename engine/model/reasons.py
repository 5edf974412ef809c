"""Why a target waits and why it ended: closed lists, each word of which docs/reference/reasons.md explains."""

# Those of a server that did not let us in: nothing was sent.
REFUSED = frozenset({"ServerFull", "ServerStarting"})
WAIT = {
    "Resolving": "The targets of the step are being looked up.",
    "InstanceSlots": "The account works on as many targets at once as its size allows.",
    "ServerConnections": "Our connections to its server are all in use.",
    "PoolConnections": "Our connections to its elastic pool are all in use.",
    "DatabaseSlots": "Its database has as many tasks at once as it is allowed.",
    "MaxParallelism": "The step runs on as many targets at once as maxParallelism allows.",
    "NoHost": "No host is there to run it.",
    "Reserved": "It is with a host, which waits for a connection or is about to begin.",
    "Connecting": "Its host opens connections to its server one after the other.",
    "AccountPaused": "The account is paused.",
    "JobPaused": "The job is paused.",
    "ServerDisabled": "Its server is disabled.",
    "ServerFull": "Its server had no room for a connection; it is tried again.",
    "ServerStarting": "Its server is starting, stopping or recovering; it is tried again.",
    "Retry": "The last attempt failed; the next one has its time.",
    "HostLost": "Its host was lost; the target is asked what became of the attempt.",
    "Overlap": "An older run of the same job goes first.",
}
END = frozenset(
    {
        "AlreadyApplied",
        "BrokenOff",
        "Canceled",
        "ClientKeyUnreadable",
        "ConnectFailed",
        "ConnectionLost",
        "CredentialMissing",
        "CredentialUnreadable",
        "HostLost",
        "HostStopped",
        "InternalError",
        "LockTimeout",
        "NoTargets",
        "NotSupported",
        "OutcomeUnknown",
        "Overlap",
        "ResultTooLarge",
        "ScriptRefused",
        "ServerFull",
        "ServerStarting",
        "ServerUnreachable",
        "StatementFailed",
        "TargetNotAllowed",
        "TargetReadOnly",
        "TargetsUnresolved",
        "TimedOut",
        "TransactionModeNotPossible",
    }
)
