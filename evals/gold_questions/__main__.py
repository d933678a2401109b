"""`python -m evals.gold_questions`: are the question files right?"""

import sys

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from evals.gold_questions.load import load_questions


def main() -> int:
    try:
        config = configuration.load()
        questions = load_questions(config.question_files(), config.root)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    unanswerable = sum(not question.answerable for question in questions)
    print(f"  questions   {len(questions)} ({unanswerable} of them unanswerable)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
