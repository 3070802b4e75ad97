"""Answers the requests of the playground over the files below a folder. Imports neither torch nor numpy.

Requests, answers and notifications are JSON-RPC 2.0, each one text. The page sends them to the worker by `postMessage`,
and the worker posts texts of the same kind. The methods of editors are those of the Language Server Protocol:
`initialize`, `textDocument/didOpen`, `didChange` (with the whole text), `didClose`, `completion`, `hover`,
`signatureHelp`, `definition`, `references`, `prepareRename`, `rename`, `formatting`, `codeAction`, `inlayHint`,
`documentSymbol`, `semanticTokens/full`. A document is a file below the folder: `file:///play/NAME` in the browser.

A change of a document is written to its file, and `textDocument/publishDiagnostics` follows for the document, for its
recipe or spec, and for what it imports: the messages of `modgraph check`, but for packages and files that a training
needs. A diagnostic has the text of the command line in `data.rendered`, and its JSON of `check --json` in
`data.diagnostic`. The worker drops a change that a later one replaces.

The page has two workers. Both hear all notifications; one checks texts, the other answers requests and checks none.

Further requests of the page take `uri`, a spec or its recipe, and `parameters`, as `-s name=value` gives them: an
object of names (`k`, `train.epochs`) with numbers, truth values, or texts as one types them.

| method | further parameters | result |
|---|---|---|
| `modgraph/check` | | `diagnostics` (each JSON of `check --json`), `rendered`, `ok` |
| `modgraph/parameters` | | `model` or null; `parameters`: `name`, `kind`, `default`, `text`, of numbers a range |
| `modgraph/program` | | `model`, its name; `program`, the hash of its graph, whatever the layout of the text |
| `modgraph/cost` | `lengths` by axis; `text` of another spec | `text` of `cost`, `cost` (JSON of `cost --json`) |
| `modgraph/show` | `after`, a pass | `text` of `show`, `passes` (all names), `after` |
| `modgraph/graph` | | a pane of `inspect/page/content.py` in JSON, and `warnings` (rendered) |
| `modgraph/diff` | `before`: `text` (or `uri`), `parameters` | `text` of `diff`, `summary`, `different`, two `panes` |
| `modgraph/tour` | `check`, facts of `facts.py` | `met`, `facts` (`words`, `met`, `missing`, `hint`), `first` message |
| `modgraph/explain` | `name`; no `uri` | `text` of `explain NAME` |
| `modgraph/files` | no `uri` | `files`: `uri`, `name` of each file below the folder |
| `modgraph/read` | | `text` |
| `modgraph/write` | `files`: texts by name, null removes one; no `uri` | `files`, as above; also a notification |

Where a spec has mistakes, a request fails with code -32803: `message` is the first mistake, `data.rendered` all of them
as the command line prints them, `data.diagnostics` their JSON. Other codes: -32601 for an unknown method, -32602 for
parameters that do not fit, -32603 for a fault of modgraph, -32800 for a request that `$/cancelRequest` withdraws,
-32801 for one that a later change of a text makes pointless: the worker answers so all requests for panes (`modgraph/…`
with `uri`) that wait when a change arrives.

A worker called `answers` loads nothing before the notification `modgraph/start`. Notifications of a worker:

| method | parameters |
|---|---|
| `modgraph/progress` | `what` (`engine`, `library`, `start`), `loaded` and `total` bytes of all |
| `modgraph/ready` | `version`, `seconds` since the worker began, `bytes` loaded, `root` (`file:///play/`) |
| `modgraph/failed` | `message`: the worker cannot start, and why |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import ModgraphError, render_all
from modgraph.lsp.methods import FEATURES, Refused
from modgraph.play.diagnosis import Publisher
from modgraph.play.documents import Documents, NotInFolder, UnknownMethod, WrongParameters
from modgraph.version import VERSION

if TYPE_CHECKING:
    from modgraph.lsp.features import Features
    from modgraph.play.panes import Panes

Json = dict[str, Any]
Params = Mapping[str, Any]
UNKNOWN, WRONG, FAULT, REFUSED = -32601, -32602, -32603, -32803
WHOLE = 1  # a change is the whole text
OPEN, CHANGE, CLOSE = "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"
WRITE = "modgraph/write"


@dataclass
class Service:
    """The requests over the files below the current folder. `explain` returns the page of a name.

    Without `is_checking`, changes are noted but not checked: another service publishes their messages.
    """

    explain: Callable[[str], str]
    documents: Documents = field(default_factory=lambda: Documents(Path.cwd().resolve()))
    is_checking: bool = True

    def __post_init__(self) -> None:
        self.publisher = Publisher(self.documents)

    @cached_property
    def features(self) -> Features:
        """What answers the editor, imported at the first of its requests: the first check comes before."""
        from modgraph.lsp.features import Features

        return Features(self.documents)

    @cached_property
    def panes(self) -> Panes:
        """What answers panes, imported likewise."""
        from modgraph.play.panes import Panes

        return Panes(self.documents, self.explain)

    def receive(self, text: str) -> Iterator[str]:
        """Answer a message: the texts of the response and of notifications, each as soon as it is known."""
        message = json.loads(text)
        method, params = str(message.get("method", "")), message.get("params") or {}
        if "id" not in message:
            yield from map(_to_text, self._follow_up(method, params))
        else:
            yield _to_text({"id": message["id"], **self._answer(method, params)})

    def _answer(self, method: str, params: Params) -> Json:
        """The `result` or the `error` of a request."""
        try:
            return {"result": self._find_result(method, params)}
        except ModgraphError as error:
            found = [each.as_json() for each in error.diagnostics]
            data = {"rendered": render_all(error.diagnostics), "diagnostics": found}
            return _error(REFUSED, error.diagnostics[0].text(), data)
        except Refused as refusal:
            return _error(REFUSED, str(refusal))
        except UnknownMethod as error:
            return _error(UNKNOWN, f'unknown method "{error}"')
        except (WrongParameters, NotInFolder) as error:
            return _error(WRONG, str(error))

    def _find_result(self, method: str, params: Params) -> Any:
        if method == "initialize":
            return {"capabilities": CAPABILITIES, "serverInfo": {"name": "modgraph", "version": VERSION}}
        if method == "shutdown":
            return None
        if method.startswith("modgraph/"):
            return self.panes.answer(method, params)
        if method in FEATURES:
            document = params.get("textDocument")
            name = self.documents.name_of(str(document.get("uri")) if isinstance(document, Mapping) else "")
            return self.features.answer(method, params) if self.documents.is_spec(name) else None
        raise UnknownMethod(method)

    def _forget(self) -> None:
        for name in vars(self).keys() & {"features", "panes"}:
            getattr(self, name).forget()

    def _follow_up(self, method: str, params: Params) -> Iterator[Json]:
        """The notifications that follow from one of the editor."""
        if method == WRITE:
            self.documents.write_files(params.get("files"))
            self._forget()
        if method not in (OPEN, CHANGE, CLOSE):
            return
        document = params["textDocument"]
        name = self.documents.name_of(document["uri"])
        if method == CLOSE:
            self.documents.open.pop(document["uri"], None)
        else:
            text = document["text"] if method == OPEN else params["contentChanges"][-1]["text"]
            self.documents.open[document["uri"]] = text
            self.documents.write(name, text)
        self._forget()
        if self.is_checking and method != CLOSE:
            for found in self.publisher.publish(name):
                yield {"method": "textDocument/publishDiagnostics", "params": found}


def _error(code: int, message: str, data: Any = None) -> Json:
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}


def _to_text(message: Json) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))


CAPABILITIES: Json = {
    "textDocumentSync": {"openClose": True, "change": WHOLE},
    **{each.capability: {**each.options} or True for each in FEATURES.values()},
}
