-- Does each strategy say so when the answer is not there, and only then?
select
    strategy,
    answer_kind,
    n_answers,
    answered,
    abstained_wrongly,
    abstained_rightly,
    answered_the_unanswerable,
    with_wrong_citations,
    with_flags
from answer_outcomes
order by strategy;
