"""The few calls of Firestore that we use, inside a deadline, counted, in our errors."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from agent.adapters.store.firestore.errors import FirestoreTimeout, Rival, rivals, translating

DEADLINE_S: Final = 15.0  # of one call with its repetitions
ID_BYTES: Final = 1500  # of a document's id, cloud.google.com/firestore/quotas, read 2026-11-21
ATTEMPTS: Final = 40  # of a write that rivals made void; each round one of them has won

T = TypeVar("T")
Data = dict[str, Any]
Where = tuple[str, str, object]  # field, operator, value


@dataclass(frozen=True, kw_only=True)
class Found:
    """A document as it was read.

    Attributes:
        stamp: When it was last written, by the server's clock; a write may insist on it.
        read_at: When it was read, by the server's clock.
    """

    id: str
    data: Data
    stamp: datetime
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write of a batch.

    Attributes:
        data: None deletes.
        absent: Only where there is no such document.
        stamp: Only where the document was last written then.
    """

    path: str
    data: Data | None
    absent: bool = False
    stamp: datetime | None = None


@dataclass
class Operations:
    """What was asked of Firestore, as it is charged: documents read, written and deleted."""

    reads: int = 0
    writes: int = 0
    deletes: int = 0
    calls: dict[str, int] = field(default_factory=dict)


class Documents:
    """One Firestore database; the client is made at the first call, because a channel does not survive a fork.

    Every method raises DependencyFailed where Firestore does not answer; then nothing was written, or everything.

    Args:
        project: Where the database is.
        database: Its name.
        client: A ``google.cloud.firestore.Client``; made when None. It finds an emulator by FIRESTORE_EMULATOR_HOST.
    """

    def __init__(self, project: str, database: str = "(default)", *, client: Any = None) -> None:
        self.name = f"{project}/{database}"
        self.operations = Operations()
        self._project = project
        self._database = database
        self._client = client
        self._lock = threading.Lock()

    def get(self, path: str) -> Found | None:
        """Read a document; None where there is none."""
        with translating(self.name):
            snapshot = self._ref(path).get(**self._limits())
        self._count("get", reads=1)
        return _found(snapshot) if snapshot.exists else None

    def server_time(self) -> datetime:
        """Return the server's time: that of a read of a document that need not be there."""
        with translating(self.name):
            read: datetime = self._ref("clock/none").get(**self._limits()).read_time
        self._count("get", reads=1)
        return read

    def get_all(self, paths: Sequence[str]) -> dict[str, Found | None]:
        """Read documents in one call, by path."""
        if not paths:
            return {}
        with translating(self.name):
            snapshots = list(self._open().get_all([self._ref(path) for path in paths], **self._limits()))
        self._count("get_all", reads=len(paths))
        by_path = {s.reference.path: _found(s) if s.exists else None for s in snapshots}
        return {path: by_path.get(path) for path in paths}

    def create(self, path: str, data: Data) -> bool:
        """Write a document where there is none; False where there is one.

        A first try whose answer was lost makes the second one say False.
        """
        try:
            with translating(self.name):
                self._write("create", [Write(path=path, data=data, absent=True)])
        except Rival:
            return False
        return True

    def first(self, path: str, data: Data) -> Data:
        """Write a document where there is none, and return what stands there; this program deletes none of them.

        Raises:
            FirestoreTimeout: A person deleted it at that moment, again and again.
        """

        def attempt() -> Data:
            if self.create(path, data):
                return data
            found = self.get(path)
            if found is None:
                raise Rival(path)
            return found.data

        return until_alone(attempt, self.name)

    def put(self, path: str, data: Data) -> None:
        """Write a document, whatever stood there."""
        with translating(self.name):
            self._write("put", [Write(path=path, data=data)])

    def write(self, writes: Sequence[Write]) -> None:
        """Write all of them or none.

        Raises:
            Rival: A precondition did not hold; nothing was written. After a lost answer it may have been our own
                first try that wrote.
        """
        with translating(self.name):
            self._write("write", writes)

    def select(
        self,
        collection: str,
        *,
        where: Iterable[Where] = (),
        order: Iterable[tuple[str, bool]] = (),
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        begin: str | None = None,
    ) -> list[Found]:
        """Read documents.

        Args:
            collection: Its path.
            where: All must hold.
            order: Fields, each with whether it descends; equal ones come by id, in the direction of the last.
            limit: At most so many.
            fields: Only these; all when None.
            begin: Path of a document of the collection; only it and those with later ids. Not together with ``order``.
        """
        with translating(self.name):
            first = () if begin is None else (("__name__", ">=", self._ref(begin)),)
            query = self._query(collection, (*where, *first), limit)
            for name, descends in order:
                query = query.order_by(name, direction="DESCENDING" if descends else "ASCENDING")
            if fields is not None:
                query = query.select(fields)
            found = [_found(snapshot) for snapshot in query.stream(**self._limits())]
        self._count("select", reads=max(1, len(found)))
        return found

    def count(self, collection: str, *, where: Iterable[Where], limit: int) -> int:
        """Count documents, ``limit`` at most; one read is charged for each thousand."""
        with translating(self.name):
            answer = self._query(collection, where, limit).count(alias="n").get(**self._limits())
        counted = int(answer[0][0].value)
        self._count("count", reads=max(1, -(-counted // 1000)))
        return counted

    def close(self) -> None:
        """Close the channel; using it afterwards opens another."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _write(self, kind: str, writes: Sequence[Write]) -> None:
        batch = self._open().batch()
        for write in writes:
            ref = self._ref(write.path)
            if write.data is None:
                batch.delete(ref)
            elif write.absent:
                batch.create(ref, write.data)
            elif write.stamp is not None:
                batch.update(ref, write.data, option=self._open().write_option(last_update_time=write.stamp))
            else:
                batch.set(ref, write.data)
        try:
            batch.commit(**self._limits())
        except rivals() as error:
            raise Rival(str(error)) from error
        deletes = sum(write.data is None for write in writes)
        self._count(kind, writes=len(writes) - deletes, deletes=deletes)

    def _query(self, collection: str, where: Iterable[Where], limit: int | None) -> Any:
        from google.cloud.firestore_v1.base_query import FieldFilter

        query: Any = self._open().collection(collection)
        for name, operator, value in where:
            query = query.where(filter=FieldFilter(name, operator, value))
        return query if limit is None else query.limit(limit)

    def _limits(self) -> dict[str, Any]:
        from google.api_core.exceptions import InternalServerError, ResourceExhausted, ServiceUnavailable
        from google.api_core.retry import Retry, if_exception_type

        again = if_exception_type(ServiceUnavailable, ResourceExhausted, InternalServerError)
        retry = Retry(predicate=again, initial=0.1, maximum=2.0, timeout=DEADLINE_S)
        return {"retry": retry, "timeout": DEADLINE_S}

    def _ref(self, path: str) -> Any:
        return self._open().document(path)

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                from google.cloud import firestore

                self._client = firestore.Client(project=self._project, database=self._database)
            return self._client

    def _count(self, kind: str, *, reads: int = 0, writes: int = 0, deletes: int = 0) -> None:
        with self._lock:
            self.operations.reads += reads
            self.operations.writes += writes
            self.operations.deletes += deletes
            self.operations.calls[kind] = self.operations.calls.get(kind, 0) + 1


def document_path(collection: str, name: str) -> str:
    """Return the path of a document whose name may hold any characters."""
    from agent.core.value import digest

    spelled = "~" + quote(name, safe="|:=@+,")
    return f"{collection}/{spelled if len(spelled) < ID_BYTES // 2 else '~' + digest(name)}"


def until_alone(attempt: Callable[[], T], database: str) -> T:
    """Try again while rivals write first.

    Raises:
        FirestoreTimeout: They did so for too long.
    """
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except Rival:
            continue
    raise FirestoreTimeout(
        f"the database {database!r} was not written",
        why=f"others wrote first {ATTEMPTS} times in a row",
        hint="it is tried again",
    )


def _found(snapshot: Any) -> Found:
    return Found(id=snapshot.id, data=snapshot.to_dict() or {}, stamp=snapshot.update_time, read_at=snapshot.read_time)
