"""The small corpus with gold questions, scored and compared without Dagster."""

from pathlib import Path
from typing import Any

import yaml
from small_corpus import SmallCorpus, write_corpus

from evals.gold_questions.build import GoldUpdate, update_gold_questions
from evals.retrieval_scores.build import ScoresUpdate, update_retrieval_scores
from evals.strategy_comparison.build import ComparisonUpdate, update_strategy_comparison

SUBJECTS = (
    "refunds take twelve working days to arrive at the bank of the buyer",
    "disputes must be answered before the ninth calendar day ends",
    "terminals restart when both outer keys are held for ten seconds",
    "payouts to Lisbon accounts leave every weekday at eleven",
    "invoices carry the tax number of the seller in the footer",
    "webhooks are signed with a secret that rotates each quarter",
    "chargebacks cost fifteen euros whatever their outcome is",
    "receipts are kept for seven years in the archive of the merchant",
    "currencies are converted at the rate of the evening before",
    "passwords expire after ninety days unless a passkey is set",
    "statements list fees of the month in a table without totals",
    "closing an account needs a letter signed by two directors",
)


def document(number: int) -> str:
    filler = "\n\n".join(f"Paragraph {p} of page {number} adds nothing new here." for p in range(4))
    return f"# Page {number}\n\n{filler}\n\nIn short, {SUBJECTS[number]}.\n"


def question(number: int, **changes: Any) -> dict[str, Any]:
    subject = SUBJECTS[number].split()
    return {
        "id": f"q{number}",
        "question": f"what about {' '.join(subject[:4])}?",
        "answer": SUBJECTS[number],
        "language": "en",
        "evidence": [{"doc_id": f"docs/{number}.md", "quote": SUBJECTS[number]}],
        **changes,
    }


def write_measured_corpus(root: Path, **changes: Any) -> Path:
    questions = [question(n) for n in range(len(SUBJECTS))]
    questions.append(question(0, id="moon", answerable=False, evidence=[], answer=""))
    (root / "gold.yaml").write_text(yaml.safe_dump({"questions": questions}))
    documents = {f"{n}.md": document(n) for n in range(len(SUBJECTS))}
    return write_corpus(
        root,
        documents,
        **{
            "questions": ["gold.yaml"],
            "comparison": {"metric": "recall@5", "resamples": 200, "baseline": "recursive"},
            **changes,
        },
    )


class MeasuredCorpus(SmallCorpus):
    def resolve(self) -> GoldUpdate:
        config = self.config
        return update_gold_questions(
            self.workspace, config.question_files(), config.root, list(config.shards())
        )

    def score(self, strategy: str) -> ScoresUpdate:
        return update_retrieval_scores(
            self.workspace,
            self.config.strategies[strategy],
            list(self.config.shards()),
            lambda _: self.embedder,
        )

    def compare(self) -> ComparisonUpdate:
        return update_strategy_comparison(
            self.workspace, list(self.config.strategies), self.config.comparison
        )

    def measure(self) -> ComparisonUpdate:
        self.update()
        self.resolve()
        for strategy in self.config.strategies:
            self.score(strategy)
        return self.compare()
