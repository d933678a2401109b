"""`python -m evals.ragas_scores agreement`: does the judge agree with people?
`python -m evals.ragas_scores prompts`: what the judge is told, to be translated.
"""

import argparse
import sys

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals.ragas_scores.agreement import agreements, judge_labels
from evals.ragas_scores.availability import ragas_problem
from evals.ragas_scores.instructions import english_prompts, read_instructions
from evals.ragas_scores.labels import load_labels


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.ragas_scores", description=__doc__)
    parser.add_argument("command", choices=["agreement", "prompts"])
    command = parser.parse_args(arguments).command
    try:
        config = configuration.load()
        return _agreement(config) if command == "agreement" else _prompts(config)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _agreement(config: configuration.Config) -> int:
    file = config.ragas.labels_file(config.root)
    if file is None:
        raise CorpusError(
            f"{config.file}: ragas.judge_labels: no labels are named. Write a file of labels "
            "(docs/configuration.md) and name it there."
        )
    judge, judged = judge_labels(
        load_labels(file),
        config.ragas,
        Workspace(config.home).caches / "judge",
        read_instructions(config.ragas.instructions_file(config.root)),
    )
    print(f"judge: {judge or 'none'}")
    for row in agreements(judge, "", judged):
        print(f"  {row}")
    for each in judged:
        if each.judged is None:
            print(f"failed: {each.label.text}\n  {each.error_kind}: {each.reason}")
        elif each.judged != each.label.is_supported:
            said = "supported" if each.judged else "not supported"
            print(f"{said}, people disagree ({each.label.kind or 'no kind'}): {each.label.text}")
            print(f"  {each.reason}")
    return 0 if judged and all(each.judged is not None for each in judged) else 1


def _prompts(config: configuration.Config) -> int:
    if problem := ragas_problem():
        raise CorpusError(problem)
    print(english_prompts(config.ragas.metrics), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
