"""The table of factors against the text it was measured on."""

import pytest

from benchmarks import languages
from benchmarks.parallel_text import PARALLEL_TEXT
from chunking_assets.chunk_sets.language_budgets import FACTORS, measured_factors


@pytest.mark.parametrize("name", languages.MODELS)
def test_the_table_is_what_the_parallel_text_measures(name):
    model = languages.MODELS[name]
    measured = languages.measure(model)
    assert measured_factors(model.tokenizer_fingerprint()) == pytest.approx(measured, rel=0.02)


def test_every_table_is_measured_again():
    fingerprints = {model.tokenizer_fingerprint() for model in languages.MODELS.values()}
    assert fingerprints == FACTORS.keys()


@pytest.mark.parametrize("fingerprint", [*FACTORS, "of another tokenizer"])
@pytest.mark.parametrize("language", ["en", "xx", None])
def test_what_was_not_measured_keeps_its_budget(fingerprint, language):
    assert measured_factors(fingerprint).get(language, 1.0) == 1.0


def test_the_benchmark_prints_every_language(capsys, monkeypatch):
    monkeypatch.setattr(languages, "MODELS", {"minilm": languages.MODELS["minilm"]})
    assert languages.main() == 0
    printed = capsys.readouterr().out
    assert all(f" {language} " in printed for language in PARALLEL_TEXT if language != "en")
