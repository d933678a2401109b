"""Every RAGAS metric, by name. Adding one is one line here."""

from evals.ragas_scores.metrics.answer_relevancy import AnswerRelevancy
from evals.ragas_scores.metrics.context_precision import ContextPrecision
from evals.ragas_scores.metrics.context_recall import ContextRecall
from evals.ragas_scores.metrics.factual_correctness import FactualCorrectness
from evals.ragas_scores.metrics.faithfulness import Faithfulness
from evals.ragas_scores.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Faithfulness(),
        ContextRecall(),
        ContextPrecision(),
        FactualCorrectness(),
        AnswerRelevancy(),
    )
}
