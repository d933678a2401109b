"""Texts in ten writing situations, and real subword tokenizers trained on them on the spot.

The tokenizers are small on purpose: they split words into many pieces, and their counts are not
additive, which is what the budget has to survive.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers, trainers

from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements.markdown import parse_text

TEXTS = {
    "portuguese": (
        "# Reembolso\n\nO Sr. Araújo pediu o reembolso de R$ 1.234,50 no dia 3. A Dra. Inês não "
        "respondeu! Será que a política de devolução mudou? Sim: veja a seção 4.2.\n\n"
        "- À vista, dez por cento de desconto.\n- A prazo, sem desconto.\n\n"
        "## Prazos\n\nA devolução leva até trinta dias úteis. Depois disso, ligue para nós.\n"
    ),
    "french": (
        "# Abonnement\n\nMme Lefèvre a-t-elle payé ? « Oui ! » répondit-elle. L'abonnement coûte "
        "9,90 € par mois, c.-à-d. moins qu'un café par semaine… Peut-être.\n\n"
        "## Résiliation\n\nÉcrivez à M. Dupont. Le délai est d'un mois. Rien n'est remboursé.\n"
    ),
    "turkish": (
        "# İade koşulları\n\nÜrünü on dört gün içinde geri gönderebilirsiniz. Iğdır'daki depomuz "
        "kargo ücretini öder. Çok mu pahalı? Hayır!\n\n"
        "## İstisnalar\n\nMuvaffakiyetsizleştiricileştiriveremeyebileceklerimizdenmişsiniz. Şaka.\n"
    ),
    "arabic": (
        "# سياسة الاسترجاع\n\nيمكنكم إرجاع المنتج خلال أربعة عشر يومًا. هل الشحن مجاني؟ نعم، داخل "
        "المدينة. راسلونا على البريد.\n\n"
        "## الاستثناءات\n\nلا تُسترجع البرامج المُفعَّلة؛ وهذا واضحٌ جدًّا.\n"
    ),
    "japanese": (
        "# 返品について\n\n商品到着後十四日以内であれば返品できます。送料は無料ですか？"
        "はい、無料です！「本当に？」と聞かれますが、本当です。葛󠄀城市と辻󠄀さんの場合は別途ご連絡ください。\n\n"
        "## 例外\n\nソフトウェアは返品できません。ガギグゲゴは分解された濁点です。\n"
    ),
    "emoji": (
        "# Party 🎉\n\nFamily 👨‍👩‍👧‍👦👨‍👩‍👧‍👦👩🏽‍💻 met 🇧🇷🇫🇷🇹🇷🇯🇵! "
        "Did they dance 💃🏿🕺🏻? Yes ❤️‍🔥.\n\n"
        "🏳️‍🌈🏳️‍🌈🏳️‍🌈🏴󠁧󠁢󠁳󠁣󠁴󠁿🏴󠁧󠁢󠁳󠁣󠁴󠁿 ok 1️⃣2️⃣3️⃣. Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘! 각각\n"
    ),
    "crlf": (
        "# Setup\r\n\r\nRun the installer. Then restart.\r\nDone? Good.\r\n\r\n"
        "```sh\r\n# not a heading\r\n\r\nmake  all\r\n```\r\n\r\n## Next\r\n\r\n"
        "Read on.\r\r\nEnd.\r\n"
    ),
    "nbsp": (
        "# Prices\u00a0and\u202funits\n\n10\u00a0000\u00a0km cost 3\u202f€.\u00a0"
        "Then\u2003wide\u2003spaces.\u3000Ideographic\u3000space.\u200bZero\u200bwidth.\ufeff Tabs\tand\tmore.\u2028A "
        "line separator.\u2029A paragraph separator.\n\n\u00a0\n\nBehind a blank line of NBSP.\n"
    ),
    "mixed": (
        "# API\n\n`GET /v1` means 取得する。 Это важно! क्या यह काम करता है? हाँ। ठीक है॥ Ok.\n\n"
        "| key | значение |\n|---|---|\n| limit | 100 |\n| ключ | 値 |\n\n"
        "```python\ndef f():\n\treturn '\u00a0'\n\n\nx = 1. + 2.\n```\n\n"
        "1. First item.\n   - nested\n     - deeper นี่คือข้อความภาษาไทยที่ไม่มีช่องว่าง\n"
        "2. Second.\n\n> A quote.\n>\n> # Quoted heading\n>\n> More.\n\n"
        "### Deep\n\nText ሰላም። ናቸው፧ Նա եկավ։ Վերջ։\n"
    ),
    "repeat": "# One\n\nThe same line again. " * 12 + "\n\n" + "The same line again.\n\n" * 12,
}

PATHOLOGICAL = {
    "no spaces": "".join(chr(97 + (i * i) % 26) for i in range(20_000)),
    "one letter": "a" * 20_000,
    "newlines": "a" + "\n" * 30_000 + "b" + "\r\n" * 2_000 + "c",
    "spaces": "a" + " " * 30_000 + "b " * 2_000,
    "nested lists": "".join("  " * (i % 60) + f"- item {i}\n" for i in range(1_000)),
    "flags": "🇧🇷" * 10_000,
    "chinese": "今天天气很好我们去公园散步然后回家吃饭" * 1_000,
}


class Subwords:
    """A `tokenizers` engine that keeps account of its work."""

    def __init__(self, engine: Engine, *, splits_at_white_space: bool = False) -> None:
        engine.encode_special_tokens = True
        self.engine, self.fingerprint = engine, "test"
        self.splits_at_white_space = splits_at_white_space
        self.characters = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        self.characters += sum(map(len, texts))
        return [len(e) for e in self.engine.encode_batch(list(texts), add_special_tokens=False)]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        self.characters += sum(map(len, texts))
        return [
            np.maximum.accumulate(np.array([start for start, _ in e.offsets], np.int64))
            for e in self.engine.encode_batch(list(texts), add_special_tokens=False)
        ]


class Words:
    """One token a word: counts are additive, offsets plain."""

    fingerprint = "words"

    splits_at_white_space = True

    def __init__(self) -> None:
        self.characters = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        self.characters += sum(map(len, texts))
        return [len(text.split()) for text in texts]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        self.characters += sum(map(len, texts))
        return [np.array([m.start() for m in re.finditer(r"\S+", t)], np.int64) for t in texts]


def _byte_pairs() -> Subwords:
    engine = Engine(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    engine.train_from_iterator(TEXTS.values(), trainer)
    return Subwords(engine)


def _unigram() -> Subwords:
    engine = Engine(models.Unigram())
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    engine.train_from_iterator(TEXTS.values(), trainer)
    return Subwords(engine)


def _word_pieces() -> Subwords:
    engine = Engine(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=["[UNK]"], show_progress=False
    )
    engine.train_from_iterator(TEXTS.values(), trainer)
    return Subwords(engine, splits_at_white_space=True)


TOKENIZERS: dict[str, Callable[[], Subwords | Words]] = {
    "byte pairs": _byte_pairs,
    "unigram": _unigram,
    "word pieces": _word_pieces,
    "words": Words,
}


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, Subwords | Words]:
    return {name: build() for name, build in TOKENIZERS.items()}


@pytest.fixture(scope="session", params=TOKENIZERS)
def tokenizer(request, tokenizers) -> Subwords | Words:
    return tokenizers[request.param]


@pytest.fixture
def words(tokenizers) -> Words:
    return tokenizers["words"]


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    return TEXTS


@pytest.fixture(scope="session", params=TEXTS)
def text(request) -> str:
    return TEXTS[request.param]


@pytest.fixture(scope="session", params=PATHOLOGICAL)
def pathological(request) -> str:
    return PATHOLOGICAL[request.param]


@pytest.fixture(scope="session")
def markdown() -> Callable[..., Document]:
    """A document of Markdown, with the elements of the real parser."""

    def build(text: str, tokenizer: Subwords | Words) -> Document:
        return Document(text, parse_text(text).elements, tokenizer)

    return build
