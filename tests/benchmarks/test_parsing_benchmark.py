from written_files import column, pdf

from benchmarks import parsing


def test_each_format_has_a_row_and_a_pdf_its_share_of_words(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.pdf").write_bytes(pdf([column(["Refunds take five days."])]))
    (tmp_path / "b.md").write_text("# Fees\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    (tmp_path / "c.pdf").write_bytes(b"no pdf")
    monkeypatch.setattr(parsing, "markitdown", lambda: None)
    assert parsing.main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "1 ok, 1 failed" in printed
    assert "PDF: 1.0000 of pypdfium2's words" in printed


def test_what_grows_faster_than_its_text_is_named(monkeypatch, capsys):
    monkeypatch.setattr(parsing, "HOSTILE", {"lines": lambda n: "a\n" * 10 ** (2 * n)})
    monkeypatch.setattr(parsing, "LEAST_SECONDS", 0)
    monkeypatch.setattr(parsing, "PARSERS", {"text/plain": parsing.PARSERS["text/plain"]})
    assert parsing.main(["--growth"]) == 1
    assert "text/plain: lines" in capsys.readouterr().out


def test_a_folder_that_is_none_is_an_error(tmp_path, capsys):
    assert parsing.main([str(tmp_path / "gone")]) == 1
    assert "is no folder" in capsys.readouterr().err
