-- Does each strategy say so when the answer is not there, and only then?
-- Without an endpoint no answer is asked for: they are skipped, unless corpus.yaml says
-- "answerer: extractive".
select
    strategy,
    answer_kind,
    n_answers,
    n_skipped,
    answered,
    abstained_wrongly,
    abstained_rightly,
    answered_the_unanswerable,
    with_wrong_citations,
    with_flags
from answer_outcomes
order by strategy;
