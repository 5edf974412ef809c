"""A bash in which the commands of a page are run one after another, as a reader types them."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(sys.executable).parent
ENOUGH = 120.0  # seconds for one command, on a busy machine


@dataclass
class Ran:
    text: str
    code: int
    output: str


@dataclass
class Shell:
    process: "subprocess.Popen[str]"
    typed: Path  # what each command finds on stdin
    lines: "queue.Queue[str | None]" = field(default_factory=queue.Queue)

    def run(self, text: str, *, typed: str = "") -> Ran:
        """One command in the shell itself, so that what it sets stays."""
        assert self.process.stdin
        self.typed.write_text(typed)
        self.process.stdin.write(f"{{ {text}\n}} < {self.typed}; printf '\\nENDED-%s\\n' $?\n")
        self.process.stdin.flush()
        output: list[str] = []
        while True:
            try:
                line = self.lines.get(timeout=ENOUGH)
            except queue.Empty:
                raise AssertionError(f"{text!r} did not end: {''.join(output)}") from None
            assert line is not None, f"{text!r} ended the shell: {''.join(output)}"
            if line.startswith("ENDED-"):
                return Ran(text, int(line[6:]), "".join(output).rstrip("\n"))
            output.append(line)

    def block(
        self, text: str, *, typed: str = "", codes: dict[str, int] | None = None
    ) -> dict[str, str]:
        """The outputs of the commands of a block, by their text. `codes`: of those that do not end with 0, by a part of them."""
        outputs = {}
        for command in commands(text):
            ran = self.run(command, typed=typed)
            expected = next((n for part, n in (codes or {}).items() if part in command), 0)
            assert ran.code == expected, f"{command}\nended with {ran.code}:\n{ran.output}"
            outputs[command] = ran.output
        return outputs


def commands(text: str) -> Iterator[str]:
    """Whole commands: lines are joined until bash finds them complete."""
    pending = ""
    for line in text.splitlines():
        pending += line + "\n"
        if not pending.strip() or pending.lstrip().startswith("#") and "\n" not in pending.strip():
            pending = ""
        elif complete(pending):
            yield pending.strip()
            pending = ""
    assert not pending, f"bash does not understand {pending!r}"


def complete(text: str) -> bool:
    if text.rstrip("\n").endswith("\\"):
        return False
    return (
        subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0
    )


@contextlib.contextmanager
def shell(folder: Path, **environment: str) -> Iterator[Shell]:
    """In the folder, with this clone's programs on PATH and no settings of the caller."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MUSTER_")}
    path = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(folder)}
    process = subprocess.Popen(
        ["bash", "--noprofile", "--norc"], cwd=folder, env=clean | path | environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    made = Shell(process, folder / "typed")

    def read() -> None:
        assert process.stdout
        for line in process.stdout:
            made.lines.put(line)
        made.lines.put(None)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield made
    finally:
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # a command that did not end, which the test has said
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(timeout=30)
        assert process.stdout
        process.stdout.close()
