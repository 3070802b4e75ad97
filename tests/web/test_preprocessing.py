"""Pictures and texts become inputs in the ES module as they do in the data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from modgraph_runtime import Port
from numpy.typing import NDArray
from PIL import Image

from modgraph.data.cifar import Cifar100
from modgraph.data.conll import LETTERS, Conll
from modgraph.data.declaration import DataSet, Scale
from modgraph.data.digits import Digits, MinMaxDigits
from modgraph.data.fashion_mnist import FashionMnist
from modgraph.data.images import read_image, resize
from modgraph.data.text import END, WORD_OR_SIGN, Text, read_king_james, words_of_file
from modgraph.data.tokenizer import Tokenizer, describe_pieces
from modgraph.data.vocabulary import Tagging, Vocabulary
from modgraph.prediction.images import prepare_image
from modgraph.prediction.texts import open_decoders
from tests.web.test_module import all_pass, needs_node

SIZES = ((8, 8), (28, 28), (5, 40))
TEXTS = (
    "In the beginning God created the heaven and the earth.",
    "And God said, Let there be light:\nand there was light.",
    "",
    " \t\n ",
    "GOD'S  own-made light — ½ of it, x² no₂ Ⅷ …\u00a0ÀÉ'î\x1cσΣ \ufeffend\x85and\u2003so",
    "don't stop-'now' -it- a_b 3rd 42nd <unk> <eos> <eos>x\n\nlast",
    "東京 e\u0301té 🙂🙃",
)
Pixels = NDArray[Any]
DARK = {"channels": "grey", "ground": "dark"}
INK = np.zeros((20, 20, 4), np.uint8)  # black ink, part of it thin, on nothing
INK[5:15, 8:12, 3], INK[15:17, 8:12, 3] = 255, 51
INK[:5, :, 0] = 200  # a colour that nobody sees


def picture(shape: tuple[int, ...], dark: bool) -> Pixels:
    """Pixels [H, W, C] of a light thing on a dark ground, or the other way round."""
    rng = np.random.default_rng(sum(shape))
    pixels = rng.integers(0, 40, shape, np.uint8)
    pixels[2:-2, 2:-2] = rng.integers(120, 255, (shape[0] - 4, shape[1] - 4, *shape[2:]), np.uint8)
    return pixels if dark else 255 - pixels


def as_input(pixels: Pixels, size: tuple[int, int], grey: bool, scale: Scale) -> NDArray[np.float32]:
    """An image [1, C, H, W] as data sets make it of light from 0 to 1."""
    light = pixels.astype(np.float32) / 255
    if grey and pixels.ndim == 3:
        light = light @ np.array([0.299, 0.587, 0.114], np.float32)
    planes = light[None] if light.ndim == 2 else light.transpose(2, 0, 1)
    return scale.normalise(resize(planes, size)[None])


def picture_case(data: DataSet, shape: tuple[int, int, int], pixels: Pixels, wanted: Pixels) -> dict[str, Any]:
    """What the module is given, and what is to come of it: of `pixels` what data sets make of `wanted`."""
    made = data.description()["preprocessing"]["image"]
    grey = made["channels"] == "grey"
    expected = np.broadcast_to(as_input(wanted, shape[1:], grey, data.scale()), (1, *shape))
    return {
        "port": {"name": "image", "dtype": "float", "shape": shape},
        "preprocessing": made,
        "picture": {"height": pixels.shape[0], "width": pixels.shape[1], "data": pixels.ravel().tolist()},
        "expected": expected.ravel().tolist(),
    }


def picture_cases() -> list[dict[str, Any]]:
    found = []
    for height, width in ((8, 8), (20, 33), (90, 41)):
        grey, colours = picture((height, width), dark=True), picture((height, width, 3), dark=True)
        for size in SIZES:
            for data in (Digits(), MinMaxDigits(), FashionMnist()):
                found.append(picture_case(data, (1, *size), grey, grey))
                found.append(picture_case(data, (3, *size), 255 - colours, colours))
            found.append(picture_case(Cifar100(folder="."), (3, *size), colours, colours))
            found.append(picture_case(Cifar100(folder="."), (3, *size), 255 - grey, 255 - grey))
    found.append(picture_case(Digits(), (1, 8, 8), INK, INK[..., 3]))
    found.append(picture_case(Cifar100(folder="."), (3, 8, 8), INK, np.repeat(255 - INK[..., 3:], 3, -1)))
    return found


def text_case(data: DataSet, name: str, vocabulary: Vocabulary, text: str, words: list[str]) -> dict[str, Any]:
    """A text, the words that it is to fall into, and their ids."""
    looked_up = [word[-LETTERS:] for word in words] if name == "endings" else words
    return {
        "port": {"name": name, "dtype": "token", "shape": ["time"], "size": len(vocabulary)},
        "preprocessing": data.description()["preprocessing"][name],
        "known": list(vocabulary.words),
        "text": text,
        "words": words,
        "ids": vocabulary.ids_of(looked_up).tolist(),
        "unknown": [word for word, found in zip(words, looked_up, strict=True) if found not in vocabulary.words],
    }


def signs_apart(text: str, lower: bool, end: str | None) -> list[str]:
    """The words of lines, as the data sets read the Bible: what stands for a word is one in typed text too."""
    lines = (text.lower() if lower else text).replace("\r\n", "\n").split("\n")
    kept = {"<unk>", end}
    found = [
        [part for piece in line.split() for part in ([piece] if piece in kept else WORD_OR_SIGN.findall(piece))]
        for line in lines
    ]
    return [word for n, line in enumerate(found) for word in (*line, *([end] if end and n < len(lines) - 1 else []))]


def text_cases(folder: Path) -> list[dict[str, Any]]:
    vocabulary = Vocabulary.most_frequent(read_king_james()[:5000], 200)
    (folder / "vocabulary.json").write_bytes(vocabulary.as_json())
    endings = Vocabulary.most_frequent([word[-LETTERS:] for word in read_king_james()[:5000]], 60)
    (folder / "tagging.json").write_bytes(Tagging({"words": vocabulary, "endings": endings}, {}).as_json())
    bible, file = (Text(train=train, vocabulary=str(folder / "vocabulary.json")) for train in (None, "some.txt"))
    tagger = Conll(train="some.conllu", targets={}, lower=True, tagging=str(folder / "tagging.json"))
    found = []
    for text in TEXTS:
        found.append(text_case(bible, "words", vocabulary, text, signs_apart(text, lower=True, end=END)))
        for name, known in (("words", vocabulary), ("endings", endings)):
            found.append(text_case(tagger, name, known, text, signs_apart(text, lower=True, end=None)))
        if text.strip():
            (folder / "text.txt").write_bytes(f"{text}\n".encode())
            found.append(text_case(file, "words", vocabulary, text, [*words_of_file(str(folder / "text.txt"))][:-1]))
    return found


def piece_cases() -> list[dict[str, Any]]:
    """Texts that a trained tokenizer divides, many times over with other line ends, blanks and signs."""
    verses = " ".join(read_king_james()[:20_000])
    tokenizer = Tokenizer.train(f"{verses}\n{verses.title()}", 600)
    texts = [
        *TEXTS,
        verses[:3000],
        "\n\n  a \t b   \r\n",
        "I'll we've 'tis don'T",
        "a\ufeffb \u3000\u2003 \x85.",
        "½²Ⅷ 3rd!?",
    ]
    found = []
    for text in texts:
        ids = tokenizer.ids_of(text).tolist()
        (read,) = open_decoders(1, tokenizer.pieces, describe_pieces(tokenizer))
        found.append(
            {
                "read": [*map(read, ids)],
                "port": {"name": "words", "dtype": "token", "shape": ["time"], "size": len(tokenizer)},
                "preprocessing": describe_pieces(tokenizer),
                "known": list(tokenizer.pieces),
                "text": text,
                "words": [tokenizer.pieces[id_] for id_ in ids],
                "ids": ids,
                "unknown": [],
            }
        )
    return found


@needs_node
def test_pieces_of_words_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"pictures": [], "texts": piece_cases()}))
    all_pass("preprocess.test.js", MODGRAPH_CASES=path)


@needs_node
def test_pictures_and_texts_become_the_numbers_that_data_sets_make_of_them(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"pictures": picture_cases(), "texts": text_cases(tmp_path)}))
    all_pass("preprocess.test.js", MODGRAPH_CASES=path)


@pytest.mark.parametrize("kind", ["RGBA", "LA", "palette", "colour key"])
def test_files_with_transparency_stand_on_white(kind: str, tmp_path: Path) -> None:
    """As the module takes them in the case of ink above."""
    alpha = INK[..., 3] if kind in ("RGBA", "LA") else INK[..., 3] // 255 * 255
    whole = Image.fromarray(INK) if kind in ("RGBA", "LA") else Image.fromarray(255 - alpha)
    options: dict[str, Any] = {}
    if kind == "LA":
        whole = whole.convert("LA")
    elif kind == "palette":
        whole, options = Image.fromarray(alpha // 255), {"transparency": 0}
        whole.putpalette([200, 0, 0, 0, 0, 0])
    elif kind == "colour key":
        whole, options = Image.fromarray(np.where(alpha > 0, 0, 77).astype(np.uint8)), {"transparency": 77}
    whole.save(tmp_path / "ink.png", **options)
    wanted = np.broadcast_to(1 - alpha.astype(np.float32) / 255, (3, 20, 20))
    np.testing.assert_allclose(read_image(str(tmp_path / "ink.png"), 20, 20), wanted, atol=1 / 250)
    image, is_negative = prepare_image(
        str(tmp_path / "ink.png"), Port("image", "float", (1, 20, 20), None, "image"), DARK
    )
    assert is_negative, "ink on paper becomes light on a dark ground"
    np.testing.assert_allclose(image[0], 1 - wanted[0], atol=1 / 250)


@pytest.mark.parametrize("size", SIZES)
def test_images_are_resized_as_pillow_does_it(size: tuple[int, int]) -> None:
    """What the README of the runtime tells of resizing."""
    light = picture((20, 33), dark=True).astype(np.float32) / 255
    wanted = np.asarray(Image.fromarray(light).resize(size[::-1], Image.Resampling.BILINEAR))
    np.testing.assert_allclose(resize(light[None], size)[0], wanted, atol=1e-5)
