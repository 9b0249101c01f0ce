"""A headless Chromium that a test drives through the DevTools protocol, over two pipes.

No package is needed besides the browser: messages are JSON, one after the other, each ended by a NUL.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    """The path of an installed browser, or None."""
    for name in (os.environ.get("ZP_BROWSER", ""), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page of one browser process; a context manager."""

    def __init__(self, width=1400, height=850):
        self.folder = tempfile.mkdtemp(prefix="zp-browser-")
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        command = [
            find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
            f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank",
        ]
        self.process = subprocess.Popen(
            self._with_pipes(command, to_child, from_child), pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.count = 0
        self.buffer = b""
        self.events = []
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(one for one in target if one["type"] == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    @staticmethod
    def _with_pipes(command, to_child, from_child):
        # The browser reads from descriptor 3 and writes to 4, whatever ours are.
        return ["/bin/bash", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "browser", *command]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, timeout=600, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self._read(end)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.into, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path, timeout=600):
        """Opens a file; returns the seconds until the page said that it was ready."""
        self.events.clear()
        start = time.monotonic()
        self.call("Page.navigate", url="file://" + path)
        end = start + timeout
        while not self.run("document.documentElement && !!document.documentElement.dataset.readyMs"):
            if time.monotonic() > end:
                raise TimeoutError(f"{path} did not become ready")
            time.sleep(0.02)
        return time.monotonic() - start

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, script, timeout=200):
        """Waits until the expression is true, over a change of the page."""
        end = time.monotonic() + timeout
        while True:
            try:
                if self.run(script):
                    return
            except RuntimeError:
                pass  # the page went away; the next one is asked
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.03)

    def visit(self, path):
        """Opens a file that is no page of lanes."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + path)
        self.wait_for("document.readyState === 'complete'")

    def settle(self):
        """Waits until what was asked to be drawn is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, key, modifiers=0):
        text = key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                      text=text if kind == "keyDown" else "")
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def screenshot(self, path=None):
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return data

    def complaints(self):
        """What the page wrote to the console as errors or warnings, and its uncaught exceptions."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("text", "exception"))
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found
