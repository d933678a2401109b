import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.parsed_elements.decoding import Undecodable, decode

TEXT = "Olá, 日本 🙂\r\nline\rline\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_taken_off(mark: bytes, encoding: str):
    assert decode(mark + TEXT.encode(encoding), declared="latin-1") == TEXT


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_utf_8_comes_back_as_it_was_written(text: str):
    data = text.encode()
    if not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        assert decode(data) == text


def test_line_ends_stay_as_they_are():
    assert decode(b"a\r\nb\rc\n") == "a\r\nb\rc\n"


def test_valid_utf_8_wins_over_what_the_page_declares():
    assert decode("café".encode(), declared="iso-8859-1") == "café"


def test_a_declared_7_bit_code_is_read_as_such():
    assert decode("日本".encode("iso-2022-jp"), declared="iso-2022-jp") == "日本"


def test_latin_1_means_what_browsers_read_under_that_name():
    assert decode(b"\x93quoted\x94 \x80", declared="ISO-8859-1") == "“quoted” €"


@pytest.mark.parametrize("name", ["no-such-code", "rot13", "punycode", "unicode_escape", "\ud800"])
def test_an_unusable_declaration_is_passed_over(name: str):
    assert decode("déjà vu, déjà vu".encode("cp1252"), declared=name) == "déjà vu, déjà vu"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Olá, não há problema com a transação de hoje à noite.", "cp1252"),
        ("price: 5 €", "cp1252"),
        ("Привет, как дела сегодня? Всё хорошо, спасибо.", "cp1251"),
        ("日本語のテキストです。今日はいい天気ですね。", "shift_jis"),
    ],
)
def test_an_old_encoding_is_recognised_from_its_bytes(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


def test_one_broken_byte_does_not_turn_a_utf_8_text_into_another_encoding():
    text = "Não é possível devolver o pagamento após 180 dias. Configurações e opções."
    assert decode(text.encode() + b"\xff") == text + "\ufffd"


def test_a_truncated_utf_16_text_loses_one_character():
    assert decode("\ufeffabc".encode("utf-16-le")[:-1]) == "ab\ufffd"


def test_what_parquet_cannot_store_is_replaced_in_place():
    assert decode(b"a\0b") == "a\ufffdb"
    assert decode("\ufeffa".encode("utf-16-le") + b"\x00\xd8" + b"b\x00") == "a\ufffdb"


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_storable_text_or_refused(data: bytes):
    try:
        text = decode(data)
    except Undecodable:
        return
    assert "\0" not in text
    assert text.encode("utf-8").decode("utf-8") == text
