"""HTTP to a pod: straight to its address from inside the cluster, otherwise through the API server's proxy.

The proxy needs the right to ``create`` and ``get`` ``pods/proxy``. It keeps the header ``Authorization`` for itself, so
that a server with a key of its own can be asked from inside the cluster only.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agent.adapters.http.client import HttpResponse
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.kubernetes.errors import translated
from agent.adapters.platform.completion import BIGGEST_BYTES
from agent.adapters.platform.kubernetes.workload import Seen
from agent.errors import InputRejected
from agent.strict_json import read_object

Json = dict[str, Any]

HOST = "the API server's proxy"


def pod_url(seen: Seen, pod: Json, port: int) -> str:  # noqa: ARG001 - one form with proxy_path
    """Return a pod's own address."""
    ip = pod["status"]["podIP"]
    return f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}"


def proxy_path(seen: Seen, pod: Json, port: int) -> str:
    """Return the path at the API server that leads to a pod's port."""
    return f"/api/v1/namespaces/{seen.workload.namespace}/pods/{pod['metadata']['name']}:{port}/proxy"


class ApiServerProxy:
    """Asks pods through an API server; the same calls as our HTTP client, with paths in place of addresses."""

    def __init__(self, api: KubernetesApi, *, timeout_s: float) -> None:
        self._api = api
        self._timeout_s = timeout_s

    @contextmanager
    def stream(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> "Iterator[_Answer]":
        """Send a request and give its answer as it comes.

        Raises:
            HttpFailed: There is no answer.
            PolicyRefused: The API server does not let us.
            DependencyFailed: The API server does not reach the pod.
        """
        sent = {name: value for name, value in (headers or {}).items() if name.lower() != "authorization"}
        content = json.loads(body) if body else None  # not strict: our own, which the client writes again
        until = time.monotonic() + self._timeout_s
        with self._api.stream(
            method, path, headers=sent, body=content, timeout_s=self._timeout_s, any_status=True
        ) as raw:
            answer = _Answer(raw, until)
            if answer.status >= 400:
                answer.refuse_own_words(f"{method} {path} failed")
            yield answer

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,  # noqa: ARG002 - the whole call has one already
    ) -> HttpResponse:
        """Send a request and return the whole answer; errors as in :meth:`stream`."""
        with self.stream(method, path, headers=headers, body=body) as answer:
            return HttpResponse(status=answer.status, headers={}, body=answer.read())


class _Answer:
    """An answer through the proxy."""

    def __init__(self, raw: Any, until: float) -> None:
        self._raw, self._until = raw, until
        self._held = b""
        self.status: int = raw.status

    def refuse_own_words(self, what: str) -> None:
        """Raise where it is the API server that answers, and not the pod behind it."""
        from kubernetes.client import ApiException

        self._held = self._raw.read(65_536)
        try:
            said = read_object(self._held, what="answer", limit=None)
        except InputRejected:
            return
        if said.get("kind") == "Status" and said.get("apiVersion") == "v1":
            raise translated(ApiException(status=self.status, body=self._held.decode("utf-8", "replace")), what)

    def chunks(self) -> Iterator[bytes]:
        """Give the body in pieces, as they come."""
        if self._held:
            yield self._held
        size = len(self._held)
        while time.monotonic() < self._until:
            chunk = self._next()
            if not chunk:
                return
            size += len(chunk)
            if size > BIGGEST_BYTES:
                raise HttpFailed(HOST, f"it sent more than {BIGGEST_BYTES} bytes", reason=Failure.TOO_LONG, sent=True)
            yield chunk
        raise HttpFailed(HOST, "it did not end in time", reason=Failure.TIMED_OUT, sent=True)

    def read(self, most: int | None = None) -> bytes:
        """Return the body, or its first ``most`` bytes."""
        found = b""
        for chunk in self.chunks():
            found += chunk
            if most is not None and len(found) >= most:
                break
        return found[:most]

    def _next(self) -> bytes:
        try:
            return bytes(self._raw.read1(65_536))
        except Exception as error:
            late = "timed out" in str(error).lower()
            reason = Failure.TIMED_OUT if late else Failure.BROKEN
            raise HttpFailed(HOST, str(error)[:300], reason=reason, sent=True) from error
