"""`python -m evals.gold_questions`: are the question files right, and where do more come from?

Without a command the question files are checked against the documents as they are now. The others
write a new file of questions, to be named under `questions:` in corpus.yaml.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pathspec

from chunking_assets import config as configuration
from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.chat_models.response_cache import CACHE_FILE
from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals.gold_questions.check import Report, check
from evals.gold_questions.documents import Documents
from evals.gold_questions.draft import SourceText, draft_questions
from evals.gold_questions.import_beir import import_beir
from evals.gold_questions.import_chunking_benchmark import import_chunking_benchmark
from evals.gold_questions.import_must_contain import import_must_contain
from evals.gold_questions.imports import Imported
from evals.gold_questions.load import LANGUAGE_TAG, load_questions
from evals.gold_questions.write import check_new, write_questions

LISTED = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if all is well or at least one question was written, else 1."""
    given = _parser().parse_args(arguments)
    try:
        status: int = given.run(given)
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return status


def _check(given: argparse.Namespace) -> int:
    config = configuration.load()
    report = check(config.question_files(), config.root, _documents(config))
    for line in _described(report):
        print(line)
    for severity, stream in (("error", sys.stderr), ("warning", sys.stdout)):
        found = [f for f in report.findings if f.severity == severity]
        for kind, alike in groupby(found, key=lambda finding: finding.kind):
            findings = list(alike)
            shown = findings if given.all else findings[:LISTED]
            for finding in shown:
                print(f"{severity}: {finding}", file=stream)
            if len(shown) < len(findings):
                more = f"{len(findings) - len(shown)} more ({kind}); --all lists them"
                print(f"{severity}: … and {more}", file=stream)
    if report.crossing:
        shown_ids = ", ".join(report.crossing[: None if given.all else LISTED])
        more_ids = "" if given.all or len(report.crossing) <= LISTED else ", …"
        print(f"note: no single document answers {shown_ids}{more_ids}: retrieval needs several.")
    errors, warnings = len(report.of("error")), len(report.of("warning"))
    if report.findings:
        print(f"  {_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    return 1 if errors else 0


def _described(report: Report) -> Iterator[str]:
    questions = report.questions
    unanswerable = sum(not question.answerable for question in questions)
    drafts = sum(question.status == "draft" for question in questions)
    several = f", {drafts} are drafts" if drafts else ""
    yield f"  questions   {len(questions)} ({unanswerable} of them unanswerable{several})"


def _import_beir(given: argparse.Namespace) -> int:
    imported = import_beir(
        given.folder,
        given.documents,
        given.collection or given.documents.name,
        split=given.split,
        language=given.language,
    )
    return _written(given, imported, "BEIR")


def _import_benchmark(given: argparse.Namespace) -> int:
    collection = given.collection or given.documents.name
    imported = import_chunking_benchmark(
        given.folder, given.documents, collection, language=given.language
    )
    return _written(given, imported, "the chunking benchmark")


def _import_must_contain(given: argparse.Namespace) -> int:
    config = configuration.load()
    imported = import_must_contain(given.file, _documents(config), language=given.language)
    return _written(given, imported, given.file.name)


def _draft(given: argparse.Namespace) -> int:
    config = configuration.load()
    documents, settings = _documents(config), config.ragas
    wanted = pathspec.GitIgnoreSpec.from_lines(given.documents)
    doc_ids = [doc_id for doc_id in documents.files if wanted.match_file(doc_id)]
    if not doc_ids:
        raise CorpusError(f"no document matches {' '.join(given.documents)}. Correct the pattern.")
    texts = documents.texts(doc_ids)
    if not texts:
        raise CorpusError(f"none of {len(doc_ids)} documents has a text. Name others.")
    model = given.model or settings.answer_model
    cache = Workspace(config.home).caches / CACHE_FILE
    with Chat(endpoint_from_environment(), cache, settings.concurrency, settings.timeout) as chat:
        drafts = draft_questions(
            [SourceText(doc_id, text, given.language) for doc_id, text in texts.items()],
            load_questions(config.question_files(), config.root),
            chat,
            model,
            count=given.count,
            concurrency=settings.concurrency,
        )
    for kind, times in sorted(drafts.rejected.items(), key=lambda item: (-item[1], item[0])):
        print(f"  rejected    {times} ({kind})")
    if not drafts.questions:
        raise CorpusError(f"no usable draft came of {drafts.asked} requests to {model}.")
    heading = (
        f"Drafts by {model}. Read each against its document; remove `status: draft` from those\n"
        "that are right and delete the others. Drafts are checked, and not scored."
    )
    write_questions(given.out, drafts.questions, heading)
    print(f"  drafts      {len(drafts.questions)} of {len(drafts.shares)} documents: {given.out}")
    return 0


def _written(given: argparse.Namespace, imported: Imported, source: str) -> int:
    for line in imported.skipped[:LISTED]:
        print(f"skipped: {line}", file=sys.stderr)
    if len(imported.skipped) > LISTED:
        print(f"skipped: … and {len(imported.skipped) - LISTED} more", file=sys.stderr)
    if not imported.questions:
        raise CorpusError(f"no question could be imported from {source}.")
    write_questions(given.out, imported.questions, f"Imported from {source}.")
    if imported.documents:
        print(f"  documents   {imported.documents}: {given.documents}")
    print(f"  questions   {len(imported.questions)}: {given.out}")
    print(f"  skipped     {len(imported.skipped)}")
    return 0


def _documents(config: Config) -> Documents:
    return Documents(config.collections, config.root, Workspace(config.home))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _new_file(text: str) -> Path:
    try:
        check_new(Path(text))
    except CorpusError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def _language(text: str) -> str:
    if not re.fullmatch(LANGUAGE_TAG, text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language tag such as en or pt-BR")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals.gold_questions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_check, all=False)
    commands = parser.add_subparsers(title="commands", metavar="command")
    checking = commands.add_parser("check", help="check the question files of corpus.yaml")
    checking.add_argument("--all", action="store_true", help=f"list more than {LISTED} of a kind")
    for name, run, what in (
        ("import-beir", _import_beir, "a folder with corpus.jsonl, queries.jsonl and qrels/"),
        ("import-chunking-benchmark", _import_benchmark, "corpora/ and questions_df.csv"),
    ):
        command = _writing(commands, name, run, f"documents and questions of {what}")
        command.add_argument("folder", type=Path)
        command.add_argument(
            "--documents", type=Path, required=True, metavar="FOLDER", help="new, for the documents"
        )
        command.add_argument(
            "--collection", help="its name in corpus.yaml; the folder's if left out"
        )
        if name == "import-beir":
            command.add_argument("--split", help="test, dev ...; all if left out")
    listed = _writing(
        commands, "import-must-contain", _import_must_contain, "questions with strings to be found"
    )
    listed.add_argument("file", type=Path)
    drafting = _writing(commands, "draft", _draft, "questions by a chat model, to be approved")
    drafting.add_argument(
        "--documents", nargs="+", default=["**"], metavar="PATTERN", help="over document ids"
    )
    drafting.add_argument("--count", type=_count, default=20, help="drafts wanted (20)")
    drafting.add_argument("--model", help="a name at the endpoint; ragas.answer_model if left out")
    return parser


def _writing(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: object,
    description: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(run=run)
    command.add_argument(
        "--out", type=_new_file, required=True, metavar="FILE", help="new, .yaml or .jsonl"
    )
    command.add_argument(
        "--language", type=_language, default="en", help="where nothing says which (en)"
    )
    return command


if __name__ == "__main__":
    sys.exit(main())
