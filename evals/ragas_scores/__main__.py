"""`python -m evals.ragas_scores agreement`: does the judge agree with people?
`python -m evals.ragas_scores prompts`: what the judge is told, to be translated.
"""

import argparse
import sys

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals.ragas_scores.availability import ragas_problem
from evals.ragas_scores.build import measure_agreement
from evals.ragas_scores.instructions import english_prompts


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
    if config.ragas.judge_labels is None:
        raise CorpusError(
            f"{config.file}: ragas.judge_labels: no labels are named. Write a file of labels "
            "(docs/configuration.md) and name it there."
        )
    rows, judged = measure_agreement(Workspace(config.home), config.ragas, config.root)
    print(f"judge: {rows[0].judge or 'none'}")
    for row in rows:
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
