"""Tagging: what is each word of a sentence, in several respects at once?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.conll_file import Tokens, is_universal, read_tokens, unknown_column
from modgraph.data.cuts import cut_off, spread
from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check
from modgraph.data.errors import BadDataFile, DataDoesNotFit
from modgraph.data.preprocessing import of_words
from modgraph.data.tagging import LETTERS, MISSING, Tagging, classes_of, endings_of, ids_of
from modgraph.data.vocabulary import Vocabulary
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, length_name

WORDS, ENDINGS = "words", "endings"
KEPT = "tagging.json"
MOST = 20  # names in a message


class Conll(DataSet):
    """Sentences of files in CoNLL-U (`.conllu`), or with columns between blanks, as CoNLL-2000 and 2003, and
    any other name: `words`, if the spec has that input also `endings`, the last three letters, and as targets columns.

    Multiword tokens and empty nodes are left out. Words and endings are the most frequent of the training sentences, as
    many as the spec knows, and `<unk>`; classes are the names in the training sentences, in their order. What a column
    has none of is `_`. A run keeps all that, as tagging.json. A sentence of more than `longest` tokens goes on in
    another example.
    """

    name = "conll"

    train: str = setting(path=True, doc="the file to learn from")
    validation: str | None = setting(None, path=True, doc="the file to watch; part of the other if not given")
    test: str | None = setting(None, path=True, doc="the file to test on; part of the other if not given")
    validation_fraction: float = setting(0.1, min=0, max=0.4, doc="share cut off for it where there is no file; or 0")
    test_fraction: float = setting(0.1, min=0.001, max=0.4, doc="share at the end for it where there is no file")
    targets: Mapping[str, str | int] = setting(
        doc="the column of each target: of CoNLL-U by name, UPOS, Feats.Gender, Misc.NAME, of others by number, from 1"
    )
    word: int = setting(1, min=1, max=1000, doc="the column of the words, where they are not CoNLL-U")
    without: str = setting(
        "class", choices=("class", "missing"), doc="what a token is that has none of a column: class _, or missing"
    )
    least: int = setting(1, min=1, doc="names that occur less often in the training sentences are as none")
    lower: bool = setting(False, doc="whether words are told in lower case")
    longest: int = setting(128, min=1, max=100_000, doc="tokens of an example, at most")
    limit: int | None = setting(None, min=1, doc="learn from so many sentences only, spread over the file")
    tagging: str | None = setting(
        None, path=True, doc="words and classes that a run has kept, instead of those of the training sentences"
    )

    def contradiction(self) -> str | None:
        paths = [each for each in (self.train, self.validation, self.test) if each is not None]
        kinds = {is_universal(each) for each in paths}
        if len(kinds) > 1:
            return "has files in CoNLL-U beside others"
        wrong = (unknown_column(column, kinds == {True}) for column in self._columns().values())
        return next((f"has a target that {each}" for each in wrong if each is not None), None)

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        sentences = self._sentences(graph)
        tagging = self._tagging(graph, sentences[TRAIN])
        _check_sizes(graph, tagging)
        length = _length(graph)
        sentences[TRAIN] = self._limited(sentences[TRAIN])
        made = {split: self._arrays(each, tagging, graph, length) for split, each in sentences.items()}
        return {split: check(arrays, graph, split) for split, arrays in made.items()}

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        return {KEPT: self._tagging(graph, self._sentences(graph)[TRAIN]).as_json()}

    def kept_in(self, folder: Path) -> DataSet:
        path = folder / KEPT
        return replace(self, tagging=str(path)) if path.exists() else self

    def description(self) -> dict[str, Any]:
        if self.tagging is None:
            return {}
        known = Tagging.read(self.tagging)
        case = ", in lower case" if self.lower else ""
        of_token = f"the place of each token in the list of words{case}; <unk> is any other"
        of_ending = f"the place of the last three letters of each token{case} in the list; <unk> is any other"
        how = {
            WORDS: of_words(of_token, "signs", self.lower),
            ENDINGS: of_words(of_ending, "signs", self.lower, letters=LETTERS),
        }
        return {
            "classes": {name: list(each) for name, each in known.classes.items()},
            "words": {name: list(each.words) for name, each in known.words.items()},
            "preprocessing": {name: how[name] for name in known.words},
        }

    def _columns(self) -> dict[str, str]:
        return {target: str(column) for target, column in self.targets.items()}

    def _sentences(self, graph: Graph) -> dict[str, Tokens]:
        """The sentences of each split; what has no file is cut off the end of the training file. Raises
        `ModgraphError`."""
        columns = self._columns()
        wanted = list(dict.fromkeys(columns[name] for name in graph.target_types if name in columns))
        whole = read_tokens(self.train, wanted, self.word)
        count = len(whole.lengths)
        shares = (0 if self.validation else self.validation_fraction, 0 if self.test else self.test_fraction)
        parts = {split: whole.take(part) for split, part in cut_off(count, *shares).items()}
        given = {VALIDATION: self.validation, "test": self.test}
        parts |= {split: read_tokens(path, wanted, self.word) for split, path in given.items() if path is not None}
        empty = next((split for split in (TRAIN, "test") if not len(parts[split].lengths)), None)
        if empty is not None:
            reason, way_out = f"its {count} sentences are too few: {empty} would have none", "name files for the others"
            raise ModgraphError([BadDataFile(path=self.train, reason=reason, way_out=f"{way_out}: data.test")])
        return {split: each for split, each in parts.items() if len(each.lengths)}

    def _tagging(self, graph: Graph, train: Tokens) -> Tagging:
        """What is known of words and classes. Raises `ModgraphError` where a target has no column."""
        unknown = [name for name in graph.target_types if name not in self.targets]
        if unknown:
            reason, way_out = f'the target "{unknown[0]}" has no column', f"name it: -s data.targets.{unknown[0]}=UPOS"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
        if self.tagging is not None:
            return _kept(self.tagging, graph)
        columns, texts = self._columns(), self._texts(train)
        sizes = {name: graph.input_types[name].size or 1 for name in texts if name in graph.input_types}
        words = {name: Vocabulary.most_frequent(texts[name], size) for name, size in sizes.items()}
        named = {target: train.labels[columns[target]] for target in graph.target_types}
        missing = self.without == "missing"
        return Tagging(words, {target: classes_of(each, self.least, missing) for target, each in named.items()})

    def _texts(self, tokens: Tokens) -> dict[str, Sequence[str]]:
        """What stands at each token, by input."""
        words = [word.lower() for word in tokens.words] if self.lower else tokens.words
        return {WORDS: words, ENDINGS: endings_of(words)}

    def _arrays(self, tokens: Tokens, tagging: Tagging, graph: Graph, length: str) -> Arrays:
        """Sentences in rows, [sentences, longest]. Raises `ModgraphError` for a label that is no class."""
        found: dict[str, NDArray[np.int64]] = {}
        for name, each in self._texts(tokens).items():
            if name in tagging.words and name in graph.input_types:
                found[name] = tagging.words[name].ids_of(each)
        for target in graph.target_types:
            labels = tokens.labels[self._columns()[target]]
            found[target] = ids_of(labels, tagging.classes[target])
            if self.without == "class":
                self._refuse_unknown(target, found[target], labels, tokens.lines)
        lengths = _pieces(tokens.lengths, self.longest)
        return Arrays({**{name: _in_rows(each, lengths) for name, each in found.items()}, length: lengths})

    def _refuse_unknown(self, target: str, ids: NDArray[np.int64], labels: Sequence[str], lines: Sequence[int]) -> None:
        if (ids != MISSING).all():
            return
        at = int((ids == MISSING).argmax())
        reason = f'"{labels[at]}" of line {lines[at]} is no class of "{target}" in the training sentences'
        way_out = "leave such labels out: data.without: missing, and train.labels: {TARGET: {missing: true}}"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out.replace("TARGET", target))])

    def _limited(self, train: Tokens) -> Tokens:
        """So many sentences as are learnt from, spread over all."""
        chosen = spread(len(train.lengths), self.limit)
        return train if chosen is None else train.take(chosen)


def _pieces(lengths: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """The lengths of examples: sentences that are longer are in several."""
    counts = -(-lengths // longest)
    found = np.full(int(counts.sum()), longest)
    found[np.cumsum(counts) - 1] = lengths - (counts - 1) * longest
    return found


def _in_rows(values: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values [tokens] as rows of these lengths, zero behind their ends."""
    rows = np.zeros((len(lengths), int(lengths.max())), np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = values
    return rows


def _kept(path: str, graph: Graph) -> Tagging:
    """What a run has kept for a graph. Raises `ModgraphError` where something of it is not there."""
    found = Tagging.read(path)
    wanted = [*(name for name in graph.input_types if name in (WORDS, ENDINGS)), *graph.target_types]
    lacking = [name for name in wanted if name not in found.words and name not in found.classes]
    if lacking:
        raise ModgraphError([BadDataFile(path=path, reason=f'it knows nothing of "{lacking[0]}"')])
    return found


def _length(graph: Graph) -> str:
    """What the lengths of sentences are called. Raises `ModgraphError` unless the spec's inputs and targets fit."""
    type_ = graph.input_types.get(WORDS)
    if type_ is None or type_.dtype != "token" or len(type_.padded) != 1 or len(type_.shape) != 1:
        reason = f'sentences give "{WORDS}", token[time, vocabulary]; the spec has {type_ or "nothing of that name"}'
        way_out = "declare: input words: token[time, 10000], its axis of any length"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
    return length_name(graph, type_.padded[0])


def _check_sizes(graph: Graph, tagging: Tagging) -> None:
    """Raises `ModgraphError` where a spec knows other numbers of words or classes than there are."""
    known = [(name, len(each), "words, <unk> included") for name, each in tagging.words.items()]
    known += [(name, len(each), f"classes ({_listed(each)})") for name, each in tagging.classes.items()]
    types = {**graph.input_types, **graph.target_types}
    for name, size, what in known:
        type_ = types.get(name)
        if type_ is not None and type_.size != size:
            reason = f'"{name}" is {type_}, and the training sentences give {size} {what}'
            right = type(type_)("token" if name in tagging.words else "class", type_.shape, size, of=type_.of)
            way_out = f"declare: {'input' if name in tagging.words else 'target'} {name}: {right}"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (", …" if len(names) > MOST else "")
