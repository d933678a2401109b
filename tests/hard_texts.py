"""Texts that chunkers get wrong, and real subword tokenizers trained on them on the spot.

Ten writing situations, files of formats that strategies are made for, and what made splitters slow.
The tokenizers are small on purpose: they split words into many pieces, and their counts are not
additive, which is what the budget has to survive.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers, trainers

from chunking_assets.parsed_elements import markdown, plain_text, python_source
from chunking_assets.parsed_elements.document import ParsedText

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

MARKDOWN = {
    "table": (
        "# Prices\n\nAll prices in R$.\n\n"
        "| Código | Descrição | 価格 |\n|---|:-:|--:|\n"
        + "".join(f"| A{n} | Item {n}: ação 返品 👍🏽 | {n}.000,00 |\n" for n in range(14))
        + "| A99 | "
        + "a very long cell that goes on. " * 12
        + "| 1 |\n\nPrices are net.\n"
    ),
    "steps": (
        "# Install\n\nBefore you begin, read this.\n\n"
        "1. Open the door.\n\n   ```sh\n   open --door\n\n   # then wait\n   ```\n\n"
        "2. Press A. Then B.\n   - not C\n     - nor D\n3. Close it.\n\n"
        "- Unordered é one.\n- Unordered two.\n\n## Remove\n\n"
        + "".join(f"{n}. Remove part {n} with care.\n" for n in range(1, 12))
    ),
    "fences": (
        "# Code\n\n```python\n# no heading\nx = '👨‍👩‍👧‍👦'\n\n\ny = 1.  # ends. Here.\n```\n\nBetween.\n\n"
        "~~~yaml\na:\n\tb:\u00a0c\n\n    - d\n~~~\n\n   ````\n   ```\n   # no\n\n   ````\n\n"
        "```\n" + "".join(f"line {n} = value[{n}];\n\n" for n in range(20)) + "```\n\n"
        "```\n# in a fence that never closes\n\nend\n"
    ),
}
PYTHON = '''\
"""A module. 👨‍👩‍👧‍👦 é"""

import os
from json import dumps, loads

LIMIT = 3  # never more


# About the next one. 🇧🇷
@cache
def first(path: str, *, deep: bool = False) -> str:
    """Read it. Then return it."""
    return open(path).read()


class Store(Base):
    """Holds things."""

    size = 4

    @property
    def name(self) -> str:
        return dumps(self.size)

    # Above the method.
    def load(self, ключ: str) -> None:
        one = 1

        for item in range(LIMIT):
            if item:
                two = loads("2")
                print(one, two, "返品について商品到着後十四日以内であれば返品できます")

            one = os.getpid()

        return None

    class Inner:
        def deep(self):
            pass
'''
CHAT = "".join(
    f"[2026-05-12 09:{n:02}] {speaker}: {said}\n"
    for n, (speaker, said) in enumerate(
        [
            ("Ana (customer)", "Olá! O meu pedido não chegou. Podem ajudar?"),
            ("Bo", "Of course. What is the number?"),
            ("Ana (customer)", "4.217\nIt was sent on 3 May.\n\nThanks 🙏🏽"),
            ("李", "您好。我们正在查询，请稍等。"),
            ("Bo", "It is " + "still on its way, said the carrier. " * 9),
            ("Ana (customer)", "Ok."),
            ("Bo", "Anything else?"),
        ]
        * 2
    )
)


@cache
def samples() -> dict[str, ParsedText]:
    """Every text with the elements of the parser that reads it."""
    texts = {name: markdown.parse_text(text) for name, text in {**TEXTS, **MARKDOWN}.items()}
    return {
        **texts,
        "python": python_source.parse_text(PYTHON),
        "chat": plain_text.parse_text(CHAT),
    }


PATHOLOGICAL = {
    "no spaces": "".join(chr(97 + (i * i) % 26) for i in range(20_000)),
    "one letter": "a" * 20_000,
    "newlines": "a" + "\n" * 100_000 + "b" + "\r\n" * 2_000 + "c",
    "spaces": "a" + " " * 30_000 + "b " * 2_000,
    "nested lists": "".join("  " * (i % 60) + f"- item {i}\n" for i in range(500)),
    "flags": "🇧🇷" * 2_000,
    "chinese": "今天天气很好我们去公园散步然后回家吃饭" * 1_000,
    "a blank line far away": "word " * 10_000 + "\n\nend",
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
