"""A real server process on this machine behind the platform contract."""

import os
import sys
import time
from pathlib import Path

from agent.adapters.clock import SystemClock
from agent.adapters.platform.host.platform import HostPlatform
from agent.core.service.serving import ServingConfig
from agent.ports.host import Stage
from tests.free_port import free_port

FAKE = Path(__file__).resolve().parents[1] / "fake_vllm.py"
LIMIT_S = 20.0


class HostWorld:
    """One server and the platform that owns it.

    Args:
        folder: For the platform's records.
        service: Its name.
        config: What to run; the program is the fake one, the port a free one.
    """

    def __init__(self, folder: Path, service: str, config: ServingConfig) -> None:
        self.folder, self.service = folder, service
        args = (*config.args, "--port", str(free_port()))
        self.config = config.with_(command=(sys.executable, str(FAKE)), args=args)
        self.platform = self.open()
        self.platform.open(service, self.config)
        self.wait()

    def open(self) -> HostPlatform:
        """Return the platform as a process that was started now sees it."""
        return HostPlatform(self.folder, SystemClock(), {**os.environ, "FAKE_FITS_LEN": "8192"}, grace_s=1)

    def wait(self) -> None:
        """Let what is under way end."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            page = self.platform.settled(self.service)
            going = [s for s in page.starts[:-1] if s.stage is not Stage.ENDED]
            going += [s for s in page.starts[-1:] if s.on_purpose and s.stage is not Stage.ENDED]
            if not going and page.newest.stage in {Stage.READY, Stage.ENDED}:
                return
            time.sleep(0.02)
        raise AssertionError(f"nothing came of it: {page.newest}")

    def close(self) -> None:
        """End everything that was started."""
        self.platform.stop(self.service)
        self.wait_for_end()

    def wait_for_end(self) -> None:
        """Wait until nothing of any start is left."""
        until = time.monotonic() + LIMIT_S
        while any(s.stage is not Stage.ENDED for s in self.platform.settled(self.service).starts):
            assert time.monotonic() < until, "a start did not end"
            time.sleep(0.02)
