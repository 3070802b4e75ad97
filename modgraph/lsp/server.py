"""The language server, over standard input and output: pygls carries the messages, and `features` answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from modgraph.lsp.features import Features, path_of
from modgraph.lsp.methods import FEATURES, Refused
from modgraph.version import VERSION

server = LanguageServer("modgraph", VERSION)
json = server.protocol._converter  # between the types of the protocol and plain JSON
REFUSED = -32803  # RequestFailed: the request is valid, and cannot be fulfilled
OPTIONS: Mapping[str, Any] = {
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions,
    types.TEXT_DOCUMENT_SIGNATURE_HELP: types.SignatureHelpOptions,
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: types.SemanticTokensRegistrationOptions,
    types.TEXT_DOCUMENT_RENAME: types.RenameOptions,
}


class _Workspace:
    """The texts and folders of the editor."""

    def texts(self) -> Mapping[str, str]:
        return {uri: document.source for uri, document in server.workspace.text_documents.items()}

    def roots(self) -> Iterable[str]:
        folders = [path_of(folder.uri) for folder in server.workspace.folders.values()]
        root = server.workspace.root_path
        return folders or ([root] if root else [])


features = Features(_Workspace())


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    features.forget()
    found = {"uri": uri, "diagnostics": features.diagnostics(uri)}
    server.text_document_publish_diagnostics(json.structure(found, types.PublishDiagnosticsParams))


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
@server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def forget(
    params: types.DidCloseTextDocumentParams | types.DidSaveTextDocumentParams | types.DidChangeWatchedFilesParams,
) -> None:
    features.forget()


def _serve(method: str) -> Callable[[Any], Any]:
    """The handler of a request: its parameters as JSON, and the answer as a type of the protocol."""
    response: Any = types.METHOD_TO_TYPES[method][1]

    def handle(params: Any) -> Any:
        try:
            found = features.answer(method, json.unstructure(params))
        except Refused as refusal:
            raise JsonRpcException(str(refusal), REFUSED) from refusal
        return json.structure({"id": 0, "jsonrpc": "2.0", "result": found}, response).result

    return handle


for _method, _feature in FEATURES.items():
    _options = OPTIONS.get(_method)
    server.feature(_method, None if _options is None else json.structure(_feature.options, _options))(_serve(_method))
