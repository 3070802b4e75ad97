"""Tagging: the classes of each word of a sentence, for one or several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modgraph.data.conll_file import NONE, Tokens, explain_unknown_column, is_universal, read_tokens
from modgraph.data.declaration import TRAIN, Arrays, DataSet, check_splits
from modgraph.data.errors import bad_file, does_not_fit
from modgraph.data.files import cut_off, spread
from modgraph.data.vocabulary import Tagging, Vocabulary, describe_words
from modgraph.declare import setting
from modgraph.ir import Graph, name_length
from modgraph.types.axis import DType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS, ENDINGS = "words", "endings"
MISSING = -1  # the id of a missing label
LETTERS = 3  # of an ending
MOST = 20  # names in a message


class Conll(DataSet, name="conll"):
    """Sentences of CoNLL-U files (`.conllu`), or of files with columns between blanks, as CoNLL-2000 and 2003.

    Inputs are `words` and, if the spec has it, `endings`, the last three letters. Targets are columns. Multiword tokens
    and empty nodes are left out. Words and endings are the most frequent of the training sentences, as many as the spec
    declares, and `<unk>`. Classes are the names in the training sentences, in alphabetical order, with `_` for an empty
    column. A run keeps all these, as tagging.json. A sentence of more than `longest` tokens continues in another
    example.
    """

    kept = "tagging"

    train: str = setting(path=True, doc="training file")
    validation: str | None = setting(None, path=True, doc="validation file; a part of the training file if not given")
    test: str | None = setting(None, path=True, doc="test file; a part of the training file if not given")
    validation_fraction: float = setting(
        0.1, min=0, max=0.4, doc="share of the training file for validation if it has no file; or 0"
    )
    test_fraction: float = setting(
        0.1, min=0.001, max=0.4, doc="share at the end of the training file for the test if it has no file"
    )
    targets: Mapping[str, str | int] = setting(
        doc="column of each target: in CoNLL-U a name, UPOS, Feats.Gender, Misc.NAME; else a number from 1"
    )
    word: int = setting(1, min=1, max=1000, doc="column of the words in files that are not CoNLL-U")
    without: str = setting(
        "class", choices=("class", "missing"), doc="label of a token with an empty cell: the class _, or missing"
    )
    least: int = setting(1, min=1, doc="treat names that occur less often in the training sentences as empty")
    lower: bool = setting(False, doc="convert words to lower case")
    longest: int = setting(128, min=1, max=100_000, doc="largest number of tokens in an example")
    limit: int | None = setting(None, min=1, doc="train on so many sentences only, spread over the file")
    tagging: str | None = setting(
        None, path=True, doc="words and classes that a run has kept, instead of those of the training sentences"
    )

    def contradiction(self) -> str | None:
        paths = [each for each in (self.train, self.validation, self.test) if each is not None]
        kinds = {is_universal(each) for each in paths}
        if len(kinds) > 1:
            return "mixes CoNLL-U and other files"
        wrong = (explain_unknown_column(column, kinds == {True}) for column in self._columns().values())
        return next((f"has a target that {each}" for each in wrong if each is not None), None)

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        sentences = self._sentences(graph)
        tagging = self._tagging(graph, sentences[TRAIN])
        _check_sizes(graph, tagging)
        type_ = graph.input_types.get(WORDS)
        if type_ is None or type_.dtype != "token" or len(type_.padded) != 1 or len(type_.shape) != 1:
            given = type_ or "nothing of that name"
            reason = f'sentences give "{WORDS}", token[time, vocabulary]; the spec has {given}'
            raise does_not_fit(reason, "declare: input words: token[time, 10000], its axis of any length")
        length, train = name_length(graph, type_.padded[0]), sentences[TRAIN]
        sentences[TRAIN] = train[spread(len(train), self.limit)]
        made = {split: self._arrays(each, tagging, graph, length) for split, each in sentences.items()}
        return check_splits(made, graph)

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        return {f"{self.kept}.json": self._tagging(graph, self._sentences(graph)[TRAIN]).as_json()}

    def description(self) -> dict[str, Any]:
        if self.tagging is None:
            return {}
        known = Tagging.read(self.tagging)
        case = ", in lower case" if self.lower else ""
        of_token = f"the place of each token in the list of words{case}; <unk> is any other"
        of_ending = f"the place of the last three letters of each token{case} in the list; <unk> is any other"
        how = {WORDS: describe_words(of_token, "signs", self.lower)}
        how[ENDINGS] = describe_words(of_ending, "signs", self.lower, letters=LETTERS)
        return {
            "classes": {name: list(each) for name, each in known.classes.items()},
            "words": {name: list(each.words) for name, each in known.words.items()},
            "preprocessing": {name: how[name] for name in known.words},
        }

    def _columns(self) -> dict[str, str]:
        return {target: str(column) for target, column in self.targets.items()}

    def _sentences(self, graph: Graph) -> dict[str, Tokens]:
        """Read the sentences of each split. A split without a file is the end of the training file. Raises
        `ModgraphError`."""
        columns = self._columns()
        wanted = list(dict.fromkeys(columns[name] for name in graph.target_types if name in columns))
        whole = read_tokens(self.train, wanted, self.word)
        parts = cut_off(self, whole, lambda path: read_tokens(path, wanted, self.word))
        for split in (TRAIN, "test"):
            if not len(parts[split]):
                reason = f"{len(whole)} sentences are too few: {split} would have none"
                raise bad_file(self.train, reason, "name files for the others: data.test")
        return {split: each for split, each in parts.items() if len(each)}

    def _tagging(self, graph: Graph, train: Tokens) -> Tagging:
        """Return the vocabularies and classes. Raises `ModgraphError` where a target has no column, or the kept file
        lacks one."""
        columns, inputs = self._columns(), [name for name in (WORDS, ENDINGS) if name in graph.input_types]
        for target in graph.target_types:
            if target not in columns:
                way_out = f"name it: -s data.targets.{target}=UPOS"
                raise does_not_fit(f'the target "{target}" has no column', way_out)
        if self.tagging is not None:
            kept = Tagging.read(self.tagging)
            for name in (*(each for each in graph.input_types if each in inputs), *graph.target_types):
                if name not in kept.words and name not in kept.classes:
                    raise bad_file(self.tagging, f'it has no "{name}"')
            return kept
        texts, classes = self._texts(train), {}
        words = {name: Vocabulary.most_frequent(texts[name], graph.input_types[name].size or 1) for name in inputs}
        for target in graph.target_types:  # names that occur often enough; the rest is a class, unless it is missing
            counts = Counter(train.labels[columns[target]])
            often = {name for name, count in counts.items() if count >= self.least and name != NONE}
            rest = self.without != "missing" and len(often) < len(counts)
            classes[target] = tuple(sorted({*often, NONE} if rest else often))
        return Tagging(words, classes)

    def _texts(self, tokens: Tokens) -> dict[str, Sequence[str]]:
        """Return the text of each token by input."""
        words = [word.lower() for word in tokens.words] if self.lower else tokens.words
        return {WORDS: words, ENDINGS: [word[-LETTERS:] for word in words]}

    def _arrays(self, tokens: Tokens, tagging: Tagging, graph: Graph, length: str) -> Arrays:
        """Return sentences in rows, [sentences, longest], longer ones in several rows. Raises `ModgraphError` for a
        label that is no class."""
        import numpy as np

        found: dict[str, NDArray[np.int64]] = {}
        for name, texts in self._texts(tokens).items():
            if name in tagging.words and name in graph.input_types:
                found[name] = tagging.words[name].ids_of(texts)
        for target in graph.target_types:
            labels, known = tokens.labels[self._columns()[target]], tagging.classes[target]
            number = {name: at for at, name in enumerate(known)}
            rest = number.get(NONE, MISSING)
            found[target] = np.fromiter((number.get(label, rest) for label in labels), np.int64, len(labels))
            if self.without == "class" and (found[target] == MISSING).any():
                at = int((found[target] == MISSING).argmax())
                where = f'of line {tokens.lines[at]} is not a class of "{target}" in the training sentences'
                way_out = "skip such labels: data.without: missing, and train.labels: {TARGET: {missing: true}}"
                raise does_not_fit(f'"{labels[at]}" {where}', way_out.replace("TARGET", target))
        counts = -(-tokens.lengths // self.longest)
        lengths = np.full(int(counts.sum()), self.longest)
        lengths[np.cumsum(counts) - 1] = tokens.lengths - (counts - 1) * self.longest
        arrays: dict[str, NDArray[np.int64]] = {length: lengths}
        for name, ids in found.items():
            arrays[name] = np.zeros((len(lengths), int(lengths.max())), np.int64)
            arrays[name][np.arange(arrays[name].shape[1]) < lengths[:, None]] = ids
        return Arrays(arrays)


def _check_sizes(graph: Graph, tagging: Tagging) -> None:
    """Raises `ModgraphError` where the spec declares another number of words or classes."""
    known: list[tuple[str, DType, int, str]]
    known = [(name, "token", len(each), "words, <unk> included") for name, each in tagging.words.items()]
    for name, classes in tagging.classes.items():
        listed = ", ".join(classes[:MOST]) + (", …" if len(classes) > MOST else "")
        known.append((name, "class", len(classes), f"classes ({listed})"))
    for name, dtype, size, what in known:
        type_ = {**graph.input_types, **graph.target_types}.get(name)
        if type_ is not None and type_.size != size:
            reason = f'"{name}" is {type_}, and the training sentences give {size} {what}'
            right = replace(type_, dtype=dtype, size=size)
            raise does_not_fit(reason, f"declare: {'input' if dtype == 'token' else 'target'} {name}: {right}")
