"""`Browser`: a headless Chromium whose pages a test asks, by the DevTools protocol over two pipes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

# Elements of pages lie in shadow trees, one in another.
_SEARCH = """(() => {
  const all = (selector, root) => [...root.querySelectorAll(selector)].concat(
    ...[...root.querySelectorAll('*')].filter(x => x.shadowRoot).map(x => all(selector, x.shadowRoot)));
  const find = selector => all(selector, document);
  %s
})()"""


class Browser:
    """A page of `executable`, a Chromium. As a context it ends with it."""

    def __init__(self, executable: str, folder: Path, address: str) -> None:
        reads, self._requests = os.pipe()
        self._answers, writes = os.pipe()
        own = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (reads, writes)]

        def as_third_and_fourth() -> None:
            os.dup2(own[0], 3)
            os.dup2(own[1], 4)

        command = [executable, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,700",
                   f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            command, close_fds=False, preexec_fn=as_third_and_fourth,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for each in (reads, writes, *own):
            os.close(each)
        self._count, self._rest = 0, b""
        target = self._call("Target.createTarget", url=address)["targetId"]
        self._page = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _call(self, method: str, page: str | None = None, **parameters: Any) -> Any:
        self._count += 1
        request = {"id": self._count, "method": method, "params": parameters}
        os.write(
            self._requests,
            json.dumps(request if page is None else {**request, "sessionId": page}).encode() + b"\0",
        )
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._answers, 1 << 16)
                assert data, "the browser has ended"
                self._rest += data
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._count:
                return answer["result"]

    def run(self, statements: str) -> Any:
        """What JavaScript returns, in which ``find(selector)`` gives the elements of the page."""
        found = self._call(
            "Runtime.evaluate", self._page, expression=_SEARCH % statements, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, statements: str, seconds: float = 60.0) -> Any:
        """What `run` gives once it is true."""
        deadline = time.monotonic() + seconds
        while not (found := self.run(statements)):
            assert time.monotonic() < deadline, f"never true: {statements}"
            time.sleep(0.1)
        return found

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._requests)
        os.close(self._answers)
