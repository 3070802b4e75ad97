"""The language server ends as editors end it, and says nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def message(method: str, id: int | None = None, params: Any = None) -> bytes:
    record = {"jsonrpc": "2.0", "method": method, "params": params, "id": id}
    content = json.dumps({key: value for key, value in record.items() if value is not None}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


INITIALIZE = message("initialize", 1, {"processId": None, "rootUri": None, "capabilities": {}})
DOCUMENT = {"uri": "file:///m.mod", "languageId": "modgraph", "version": 1, "text": "model m() { }"}
OPEN = message("initialized", params={}) + message("textDocument/didOpen", params={"textDocument": DOCUMENT})
ENDS = {
    "shutdown and exit": INITIALIZE + OPEN + message("shutdown", 2) + message("exit"),
    "the end of its input after a shutdown": INITIALIZE + OPEN + message("shutdown", 2),
    "the end of its input": INITIALIZE,
    "nothing at all": b"",
}


@pytest.mark.some(1)
@pytest.mark.parametrize("end", ENDS)
def test_a_server_ends_in_silence(end: str) -> None:
    command = [sys.executable, "-m", "modgraph", "lsp"]
    done = subprocess.run(command, input=ENDS[end], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert (b'"result"' in done.stdout) == (INITIALIZE in ENDS[end]), "it does not answer"
