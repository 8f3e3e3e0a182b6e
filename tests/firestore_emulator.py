"""Google's Firestore emulator for tests and benchmarks, started with java directly: one process to end."""

import os
import shutil
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

import grpc

from tests.free_port import free_port


class Missing(Exception):
    """Java or the emulator's jar is not installed here."""


def jar() -> Path:
    """Return the emulator's jar, below the root of gcloud's SDK."""
    gcloud = shutil.which("gcloud")
    if gcloud is None or shutil.which("java") is None:
        raise Missing("java and gcloud with its cloud-firestore-emulator component are needed")
    root = Path(gcloud).resolve().parents[1] / "platform" / "cloud-firestore-emulator"
    found = sorted(root.glob("cloud-firestore-emulator*.jar"))
    if not found:
        raise Missing("the emulator is not installed: gcloud components install cloud-firestore-emulator")
    return found[-1]


def client_of(host: str, project: str, database: str):
    """A client of the emulator at an address; the environment of the process stays as it was."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import firestore

    before = os.environ.get("FIRESTORE_EMULATOR_HOST")
    os.environ["FIRESTORE_EMULATOR_HOST"] = host
    try:
        return firestore.Client(project=project, database=database, credentials=AnonymousCredentials())
    finally:
        if before is None:
            del os.environ["FIRESTORE_EMULATOR_HOST"]
        else:
            os.environ["FIRESTORE_EMULATOR_HOST"] = before


class Emulator:
    """One running emulator; clients find it by FIRESTORE_EMULATOR_HOST."""

    def __init__(self, log: Path) -> None:
        port = free_port()
        self.host = f"127.0.0.1:{port}"
        main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(jar()), main]
        command += ["start", "--host=127.0.0.1", f"--port={port}"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, env=dict(os.environ))
        channel = grpc.insecure_channel(self.host)
        grpc.channel_ready_future(channel).result(timeout=60)
        channel.close()

    def client(self, project: str, database: str = "(default)"):
        """A client of this emulator; the environment of the process stays as it was."""
        return client_of(self.host, project, database)

    def clear(self, project: str, database: str = "(default)") -> None:
        """Forget every document of a database."""
        path = f"http://{self.host}/emulator/v1/projects/{project}/databases/{database}/documents"
        urlopen(Request(path, method="DELETE")).read()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
