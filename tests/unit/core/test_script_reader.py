import asyncio
import os
import signal
from pathlib import Path

import pytest

from muster.core import script
from muster.core.errors import Unavailable
from muster.core.script_reader import SHORT, Reader, analyse

LONG = "select 1 as a, 'b' as b;\n" * 1000
LARGEST = "select 1;" * 116_000


def workers() -> set[int]:
    """Processes of ours that read scripts."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [int(pid) for each in children for pid in each.read_text().split()]
    return {pid for pid in pids if b"script_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.fixture
async def reader():
    made = Reader()
    yield made
    made.close()


@pytest.mark.parametrize("text", ["select 1; commit", LONG, LONG + "commit; selec 1; '$(zzz)'"])
@pytest.mark.parametrize("transaction", ["auto", "none"])
async def test_a_script_is_read_by_a_worker_as_it_would_be_at_once(text, transaction):
    assert await analyse(text, transaction) == script.analyse(text, transaction)
    assert len(LONG) > SHORT


async def test_a_script_that_needs_too_much_cpu_is_refused_and_its_worker_is_gone():
    reader, others = Reader(cpu_limit=0.01), workers()
    try:
        analysis = await reader.analyse(LARGEST)
        left = workers() - others
    finally:
        reader.close()

    assert [problem.code for problem in analysis.problems] == ["ScriptTooComplex"]
    assert analysis.script.text == LARGEST
    assert left == set()


async def test_no_reply_in_time_is_no_judgement_of_the_script():
    reader, others = Reader(timeout=0.001), workers()
    try:
        with pytest.raises(Unavailable) as caught:
            await reader.analyse(LARGEST)
        left = workers() - others
    finally:
        reader.close()

    assert caught.value.code == "ScriptReaderBusy"
    assert left == set()


async def test_a_used_worker_that_runs_out_of_cpu_judges_the_script(reader):
    await reader.analyse(LONG)
    reader._cpu_limit = 0.01

    analysis = await reader.analyse(LARGEST)

    assert [problem.code for problem in analysis.problems] == ["ScriptTooComplex"]


async def test_a_worker_that_was_killed_is_replaced(reader):
    others = workers()
    before = await reader.analyse(LONG)
    (pid,) = workers() - others
    os.kill(pid, signal.SIGKILL)

    after = await reader.analyse(LONG)

    assert after == before
    assert pid not in workers()


async def test_other_work_goes_on_while_a_script_is_read(reader):
    reading = asyncio.create_task(reader.analyse(LARGEST))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0.001)
        turns += 1

    assert (await reading).problems == ()
    assert turns > 10


async def test_no_worker_is_left_when_the_reader_is_closed():
    reader, others = Reader(), workers()
    await asyncio.gather(*(reader.analyse(LONG) for _ in range(5)))
    assert 1 <= len(workers() - others) <= 2

    reader.close()

    assert workers() == others


async def test_one_caller_with_many_scripts_does_not_keep_another_waiting_for_all_of_them(reader):
    many = [asyncio.create_task(reader.analyse(LARGEST, caller="a")) for _ in range(4)]
    await asyncio.sleep(0)

    await reader.analyse(LONG, caller="b")

    assert sum(each.done() for each in many) <= 1
    for each in many:
        each.cancel()
    await asyncio.gather(*many, return_exceptions=True)


async def test_a_caller_that_gave_up_has_no_second_worker_while_the_first_is_busy(reader):
    others = workers()
    given_up = asyncio.create_task(reader.analyse(LARGEST, caller="a"))
    await asyncio.sleep(0)
    given_up.cancel()

    await reader.analyse(LONG, caller="a")

    assert len(workers() - others) == 1
