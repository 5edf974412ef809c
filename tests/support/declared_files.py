"""The command line on files, against an account whose control database is real.

async with start_files(settings, targets, tmp_path) as files:
    files.write("a.yaml", text)
    code, out, err = await files.muster("diff", "-f", "a.yaml")
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.core.settings import Settings
from tests.support import arm
from tests.support.jobs_fixture import ACCOUNT, JobsApi, start_jobs_api
from tests.support.postgres import Postgres
from tests.support.running_api import served


@dataclass
class Files:
    api: JobsApi
    url: str
    folder: Path

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    async def muster(
        self, *words: str, stdin: str = "", **environment: str
    ) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        own = {"MUSTER_URL": self.url, "MUSTER_TOKEN": arm.TOKEN, "MUSTER_ACCOUNT": ACCOUNT}
        command = [sys.executable, "-m", "muster", *words]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=self.folder, env=os.environ | own | environment, input=stdin,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    async def writes(self) -> list[str]:
        """What the control database recorded: one row for each change, none where nothing was written."""
        rows: list[Any] = await self.api.control(
            "select action from jobs_internal.audit order by audit_id"
        )
        return [row["action"] for row in rows]


@contextlib.asynccontextmanager
async def start_files(
    settings: Settings, targets: Postgres, tmp_path: Path
) -> AsyncIterator[Files]:
    folder = tmp_path / "files"
    folder.mkdir()
    async with start_jobs_api(settings, targets, tmp_path) as api, served(api.app) as url:
        yield Files(api, url, folder)
