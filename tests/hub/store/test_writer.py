"""The writer keeps its word: committed or not, all of a work or nothing of it, and nobody waits for ever."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from hub.records.log.chain import GENESIS, Head, verify
from hub.records.log.head import HeadFile
from hub.store.database import StoreFailed, open_reader, open_writer
from hub.store.writer import Done, Failed, Journal, Transaction, Writer, commit_group

AT = "2026-03-01T12:00:00.000Z"


class Noon:
    """Wall time stands still; nobody waits."""

    def wall(self) -> datetime:
        return datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("the writer does not sleep")


class HeadInMemory:
    def __init__(self) -> None:
        self.kept: Head | None = None
        self.broken = False

    def read(self) -> Head | None:
        return self.kept

    def write(self, head: Head) -> None:
        if self.broken:
            raise OSError(5, "Input/output error")
        self.kept = head


def note(text: str, position: int = 0) -> Callable[[Transaction], int]:
    def work(transaction: Transaction) -> int:
        transaction.connection.execute("INSERT INTO cursor (name, position) VALUES (?, ?)", (text, position))
        return transaction.append("test.noted", text.encode())

    return work


def noted(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM cursor")}


def logged(connection: sqlite3.Connection) -> list[bytes]:
    return [body for (body,) in connection.execute("SELECT body FROM payload ORDER BY seq")]


def fail(transaction: Transaction) -> None:
    note("half done")(transaction)
    raise LookupError("no such dish")


def test_a_group_is_committed_with_its_log_rows_chained_in_order(connection: sqlite3.Connection) -> None:
    keeper = HeadInMemory()
    journal = Journal("log-1", "home", keeper)
    outcomes = commit_group(connection, journal, [note("a"), note("b")], AT)
    assert outcomes == [Done(1), Done(2)]
    assert logged(connection) == [b"a", b"b"]
    assert verify(connection, "log-1", 1, 2) == []
    rows = connection.execute("SELECT seq, prev, hash, kind, at, kitchen FROM log ORDER BY seq").fetchall()
    assert [row[0] for row in rows] == [1, 2]
    assert rows[0][1] == GENESIS
    assert rows[1][1] == rows[0][2]
    assert rows[0][3:] == ("test.noted", AT, "home")
    assert keeper.kept == Head("log-1", 2, rows[1][2])


def test_a_work_that_raises_is_undone_alone_and_its_seqs_are_used_again(
    connection: sqlite3.Connection,
) -> None:
    journal = Journal("log-1", "home", HeadInMemory())
    outcomes = commit_group(connection, journal, [note("a"), fail, note("b")], AT)
    assert outcomes[0] == Done(1)
    assert isinstance(outcomes[1], Failed)
    assert isinstance(outcomes[1].error, LookupError)
    assert outcomes[2] == Done(2)
    assert noted(connection) == {"a", "b"}
    assert logged(connection) == [b"a", b"b"]
    assert verify(connection, "log-1", 1, 2) == []


def test_a_constraint_broken_by_one_work_is_its_own_failure(connection: sqlite3.Connection) -> None:
    journal = Journal("log-1", "home", HeadInMemory())
    outcomes = commit_group(connection, journal, [note("a"), note("a"), note("b")], AT)
    assert isinstance(outcomes[1], Failed)
    assert isinstance(outcomes[1].error, sqlite3.IntegrityError)
    assert logged(connection) == [b"a", b"b"]


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_work_that_ends_the_transaction_itself_fails_the_whole_group(
    connection: sqlite3.Connection, ending: str
) -> None:
    keeper = HeadInMemory()
    journal = Journal("log-1", "home", keeper)
    with pytest.raises(StoreFailed, match="ended inside a work"):
        commit_group(
            connection, journal, [note("a"), lambda transaction: transaction.connection.execute(ending)], AT
        )
    assert keeper.kept is None
    assert commit_group(connection, journal, [note("b")], AT) == [Done(1)]
    assert verify(connection, "log-1", 1, 1) == []


def test_disk_full_fails_the_group_leaves_nothing_and_is_over_when_there_is_room_again(
    connection: sqlite3.Connection,
) -> None:
    keeper = HeadInMemory()
    journal = Journal("log-1", "home", keeper)
    commit_group(connection, journal, [note("before")], AT)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    big = b"x" * 100_000
    with pytest.raises(StoreFailed, match="SQLITE_FULL"):
        commit_group(
            connection, journal, [note("a"), lambda transaction: transaction.append("test.big", big)], AT
        )
    with pytest.raises(StoreFailed, match="SQLITE_FULL"):
        # met inside a work rather than at the end: still the store's failure, not the work's
        commit_group(
            connection,
            journal,
            [
                note("b"),
                lambda transaction: transaction.connection.execute(
                    "INSERT INTO meta (name, value) VALUES ('big', ?)", (big.decode(),)
                ),
            ],
            AT,
        )
    assert noted(connection) == {"before"}
    assert not connection.in_transaction
    connection.execute("PRAGMA max_page_count = 1000000")
    assert commit_group(connection, journal, [note("after")], AT) == [Done(2)]
    assert verify(connection, "log-1", 1, 2) == []
    assert keeper.kept is not None
    assert keeper.kept.seq == 2


def test_a_head_that_cannot_be_written_acknowledges_nothing(connection: sqlite3.Connection) -> None:
    keeper = HeadInMemory()
    journal = Journal("log-1", "home", keeper)
    commit_group(connection, journal, [note("before")], AT)
    keeper.broken = True
    with pytest.raises(StoreFailed, match="head"):
        commit_group(connection, journal, [note("a")], AT)
    keeper.broken = False
    # the group itself was committed: the log goes on behind it instead of reusing its seq
    assert commit_group(connection, journal, [note("b")], AT) == [Done(3)]
    assert verify(connection, "log-1", 1, 3) == []


def test_a_real_file_size_limit_is_a_store_failure_and_the_log_stays_whole(
    tmp_path: Path, ended: Callable[..., str]
) -> None:
    script = """
        import resource, signal, sys
        from pathlib import Path
        from conftest import fill, NumberedIds
        from hub.store.database import StoreFailed, open_writer
        from hub.store.writer import Journal, commit_group, log_identity
        from hub.records.log.chain import chain_head, verify
        from hub.records.log.head import HeadFile
        folder = Path(sys.argv[1])
        fill(folder, 20)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        connection = open_writer(folder / "hub.db")
        journal = Journal(log_identity(connection, NumberedIds()), "home", HeadFile(folder / "head"))
        work = lambda transaction: transaction.append("test.big", b"x" * 20_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        stored = 0
        try:
            for _ in range(100):
                commit_group(connection, journal, [work], "2026-03-01T12:00:00.000Z")
                stored += 1
        except StoreFailed as failure:
            print("failed", failure.detail)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        commit_group(connection, journal, [work], "2026-03-01T12:00:00.000Z")
        end = chain_head(connection, journal.log_id)
        found = verify(connection, journal.log_id, 1, end.seq)
        print(end.seq == 20 + stored + 1, stored, found, journal.head == end)
    """
    first, second = ended(script, tmp_path).splitlines()
    assert first.startswith("failed")
    assert second.startswith("True")
    assert second.endswith("[] True")
    assert int(second.split()[1]) > 0


async def test_a_locked_database_is_a_store_failure_within_the_busy_timeout(tmp_path, opened) -> None:
    async with opened(tmp_path, busy_timeout_s=0.1) as store:
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with anyio.fail_after(3), pytest.raises(StoreFailed, match="locked"):
            await store.writer.submit(note("a"))
        other.execute("ROLLBACK")
        other.close()
        assert await store.writer.submit(note("b")) == 1


async def test_each_caller_gets_its_own_answer_and_its_own_exception(tmp_path, opened) -> None:
    answers: dict[int, object] = {}

    async with opened(tmp_path) as store:

        async def ask(number: int) -> None:
            try:
                answers[number] = await store.writer.submit(
                    fail if number % 5 == 0 else note(f"n{number}", number)
                )
            except LookupError as error:
                answers[number] = error

        async with anyio.create_task_group() as tasks:
            for number in range(500):
                tasks.start_soon(ask, number)
        stored = await store.database.read(noted)
    failed = [number for number, answer in answers.items() if isinstance(answer, LookupError)]
    assert sorted(failed) == list(range(0, 500, 5))
    assert stored == {f"n{number}" for number in range(500) if number % 5}
    assert sorted(answer for answer in answers.values() if isinstance(answer, int)) == list(range(1, 401))


async def test_works_that_wait_are_committed_together(tmp_path, opened) -> None:
    async with opened(tmp_path, run=False) as store:
        groups: list[int] = []
        run = store.database.run

        async def counted(work):
            groups.append(len(work.keywords["works"]))
            return await run(work)

        store.database.run = counted
        async with anyio.create_task_group() as tasks:
            for number in range(450):
                tasks.start_soon(store.writer.submit, note(f"n{number}"))
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as serving:
                serving.start_soon(store.writer.run)
                while not groups or sum(groups) < 450:
                    await anyio.sleep(0.005)
                serving.cancel_scope.cancel()
        assert groups == [200, 200, 50]


async def test_a_cancelled_caller_does_not_undo_what_it_submitted(tmp_path, opened) -> None:
    async with opened(tmp_path) as store:
        begun = anyio.Event()

        def slow(transaction: Transaction) -> None:
            note("slow")(transaction)
            loop.call_soon_threadsafe(begun.set)
            time.sleep(0.1)

        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.writer.submit, slow)
            tasks.start_soon(store.writer.submit, note("queued"))
            await begun.wait()
            tasks.cancel_scope.cancel()
        assert await store.writer.submit(note("later")) > 0
        assert {"slow", "queued", "later"} <= await store.database.read(noted)


async def test_a_cancelled_writer_finishes_its_group_and_answers_what_is_queued(tmp_path, opened) -> None:
    answers: list[int] = []
    async with opened(tmp_path, run=False, group_most=2) as store:

        async def ask(number: int) -> None:
            answers.append(await store.writer.submit(note(f"n{number}")))

        async with anyio.create_task_group() as callers:
            for number in range(7):
                callers.start_soon(ask, number)
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as serving:
                serving.start_soon(store.writer.run)
                await anyio.sleep(0)
                serving.cancel_scope.cancel()
        assert sorted(answers) == list(range(1, 8))
        assert len(await store.database.read(noted)) == 7
        with pytest.raises(StoreFailed, match="ended"):
            await store.writer.submit(note("too late"))


async def test_a_group_under_way_is_finished_and_answered_although_the_writer_is_cancelled(
    tmp_path, opened
) -> None:
    async with opened(tmp_path, run=False) as store:
        loop, begun, cancelled = asyncio.get_running_loop(), anyio.Event(), threading.Event()
        answers: list[int] = []

        def slow(transaction: Transaction) -> int:
            loop.call_soon_threadsafe(begun.set)
            assert cancelled.wait(10)
            return note("slow")(transaction)

        async def ask() -> None:
            answers.append(await store.writer.submit(slow))

        async with anyio.create_task_group() as callers:
            callers.start_soon(ask)
            async with anyio.create_task_group() as serving:
                serving.start_soon(store.writer.run)
                await begun.wait()
                serving.cancel_scope.cancel()
                asyncio.get_running_loop().call_later(0.05, cancelled.set)
        assert answers == [1]


async def test_a_queue_that_never_empties_does_not_keep_a_cancelled_writer_going(tmp_path, opened) -> None:
    async with opened(tmp_path, run=False, group_most=1) as store:
        served = 0

        async def keep_asking(name: str) -> None:
            nonlocal served
            for number in range(200):
                try:
                    await store.writer.submit(note(f"{name}{number}"))
                except StoreFailed:
                    return
                served += 1
                if served == 5:
                    serving.cancel_scope.cancel()

        async with anyio.create_task_group() as callers:
            for name in "abc":
                callers.start_soon(keep_asking, name)
            async with anyio.create_task_group() as serving:
                serving.start_soon(store.writer.run)
        assert 5 <= served < 20


@pytest.mark.parametrize("steps", range(1, 7))
async def test_a_writer_cancelled_at_any_step_leaves_no_caller_waiting(tmp_path, opened, steps: int) -> None:
    async with opened(tmp_path, run=False) as store:
        serving = asyncio.create_task(store.writer.run())
        asking = [asyncio.create_task(store.writer.submit(note(f"n{number}"))) for number in range(300)]
        for _ in range(steps):
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.sleep(0)
        serving.cancel()
        with anyio.fail_after(5):
            await asyncio.gather(serving, *asking, return_exceptions=True)
        said = {f"n{number}" for number, task in enumerate(asking) if task.exception() is None}
        assert all(
            isinstance(task.exception(), StoreFailed) for task in asking if task.exception() is not None
        )
        # what was confirmed is stored; what was not may be, but whole
        stored, bodies = await store.database.read(lambda connection: (noted(connection), logged(connection)))
        assert said <= stored
        assert {body.decode() for body in bodies} == stored


async def test_a_full_queue_makes_the_submitter_wait_and_loses_nothing(tmp_path, opened) -> None:
    async with opened(tmp_path, run=False, waiting_most=3, group_most=2) as store:
        async with anyio.create_task_group() as serving:
            async with anyio.create_task_group() as callers:
                for number in range(20):
                    callers.start_soon(store.writer.submit, note(f"n{number}"))
                await anyio.wait_all_tasks_blocked()
                serving.start_soon(store.writer.run)
            serving.cancel_scope.cancel()
        assert len(await store.database.read(noted)) == 20


async def test_every_connection_flushes_its_commits(tmp_path, opened) -> None:
    def synchronous(connection: sqlite3.Connection) -> int:
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    async with opened(tmp_path) as store:
        assert await store.database.run(synchronous) == 2
        assert await store.database.read(synchronous) == 2
        for connection in (open_writer(store.path), open_reader(store.path)):
            assert synchronous(connection) == 2
            connection.close()


async def test_the_head_file_follows_every_commit(tmp_path, opened) -> None:
    async with opened(tmp_path) as store:
        for number in range(1, 5):
            await store.writer.submit(note(f"n{number}"))
            kept = HeadFile(store.head_path).read()
            assert kept is not None
            assert kept.seq == number


async def test_a_closed_database_says_so(tmp_path, opened) -> None:
    async with opened(tmp_path) as store:
        await store.database.close()
        with pytest.raises(StoreFailed, match="closed"):
            await store.database.read(noted)
        with pytest.raises(StoreFailed, match="closed"):
            await store.writer.submit(note("a"))


async def test_the_writer_serves_a_store_without_a_thread_of_its_own(connection: sqlite3.Connection) -> None:
    class InLine:
        async def run(self, work):
            return work(connection)

        async def read(self, work):
            return work(connection)

    keeper = HeadInMemory()
    writer = Writer(InLine(), Journal("log-1", "home", keeper), Noon())
    threads = threading.active_count()
    async with anyio.create_task_group() as serving:
        serving.start_soon(writer.run)
        assert await writer.submit(note("a")) == 1
        with pytest.raises(LookupError):
            await writer.submit(fail)
        assert await writer.submit(note("b")) == 2
        serving.cancel_scope.cancel()
    assert threading.active_count() == threads
    assert keeper.kept is not None
    assert keeper.kept.seq == 2
    at = connection.execute("SELECT DISTINCT at FROM log").fetchall()
    assert at == [("2026-03-01T12:00:00.000Z",)]


async def test_a_writer_runs_once(tmp_path, opened) -> None:
    async with opened(tmp_path) as store:
        await store.writer.submit(note("a"))
        with pytest.raises(RuntimeError, match="once"):
            await store.writer.run()
