import subprocess
import sys

from evals.ragas_scores import availability
from evals.ragas_scores.availability import ragas_problem


def test_another_ragas_release_is_a_problem_with_its_cure(monkeypatch):
    monkeypatch.setattr(availability, "version", lambda _: "0.5.0")
    assert "0.5.0" in ragas_problem()
    assert "pip install 'ragas==0.4.3'" in ragas_problem()


def test_no_ragas_is_a_problem_with_its_cure(monkeypatch):
    def missing(name):
        raise availability.PackageNotFoundError(name)

    monkeypatch.setattr(availability, "version", missing)
    assert "not installed" in ragas_problem()
    assert "pip install 'ragas==0.4.3'" in ragas_problem()


def test_a_ragas_that_does_not_import_is_a_problem_with_its_cure(tmp_path):
    """As when langchain-community dropped the module ragas imports."""
    package = tmp_path / "ragas"
    package.mkdir()
    (package / "__init__.py").write_text("import langchain_community.chat_models.vertexai_gone")
    info = tmp_path / "ragas-0.4.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ragas\nVersion: 0.4.3\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from evals.ragas_scores.availability import ragas_problem; print(ragas_problem())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("ragas does not import (ModuleNotFoundError")
    assert "langchain-community>=0.3.27,<0.4" in said.stdout


def test_importing_the_stage_loads_neither_ragas_nor_openai():
    code = (
        "import pkgutil, importlib, sys, evals.ragas_scores as stage\n"
        "names = [m.name for m in pkgutil.iter_modules(stage.__path__)]\n"
        "for name in names: importlib.import_module(f'evals.ragas_scores.{name}')\n"
        "heavy = {'ragas', 'openai', 'langchain', 'langchain_core', 'datasets', 'pandas'}\n"
        "print(len(names), sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, heavy = said.stdout.split(maxsplit=1)
    assert int(count) >= 6
    assert heavy.strip() == "[]"
