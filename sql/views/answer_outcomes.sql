create view answer_outcomes as
with
given as (
    select
        a.strategy,
        a.answer_kind,
        q.answerable,
        a.abstained,
        a.status,
        len(a.issues) > 0 as has_issues,
        len(a.numbers_not_in_context) > 0
        or len(a.names_not_in_context) > 0
        or len(a.quotes_not_in_context) > 0 as is_flagged
    from answers as a
    join gold_questions as q on q.question_id = a.question_id
)
select
    strategy,
    max(answer_kind) as answer_kind,
    count(*) as n_total,
    count(*) filter (where status = 'ok') as n_answers,
    count(*) filter (where status = 'error') as n_error,
    count(*) filter (where status = 'skipped') as n_skipped,
    count(*) filter (where answerable and abstained) as abstained_wrongly,
    count(*) filter (where answerable and not abstained) as answered,
    count(*) filter (where not answerable and abstained) as abstained_rightly,
    count(*) filter (where not answerable and not abstained) as answered_the_unanswerable,
    count(*) filter (where abstained) / nullif(count(abstained), 0) as abstention_rate,
    count(*) filter (where not abstained and has_issues) as with_wrong_citations,
    count(*) filter (where not abstained and is_flagged) as with_flags
from given
group by strategy
order by strategy;

comment on view answer_outcomes is 'What became of the questions each strategy was asked to answer, abstention included; told without a judge.';
comment on column answer_outcomes.strategy is 'The strategy.';
comment on column answer_outcomes.answer_kind is 'generated or extractive: the two are not comparable. NULL if nothing was answered.';
comment on column answer_outcomes.n_total is 'Questions: answered, failed or skipped.';
comment on column answer_outcomes.n_answers is 'Answers given, abstentions included.';
comment on column answer_outcomes.n_error is 'Answers that failed: refused, truncated, timed out ...';
comment on column answer_outcomes.n_skipped is 'Questions not asked: no endpoint, or beyond the configured number.';
comment on column answer_outcomes.abstained_wrongly is 'Answerable questions to which it said that the contexts do not hold the answer. Right of the answerer where retrieval found nothing; the reader has no answer all the same.';
comment on column answer_outcomes.answered is 'Answerable questions it answered.';
comment on column answer_outcomes.abstained_rightly is 'Unanswerable questions on which it abstained.';
comment on column answer_outcomes.answered_the_unanswerable is 'Unanswerable questions it answered all the same: invented.';
comment on column answer_outcomes.abstention_rate is 'Share of n_answers that abstain; NULL if nothing was answered.';
comment on column answer_outcomes.with_wrong_citations is 'Answers with an issue left in their citations: answers.issues.';
comment on column answer_outcomes.with_flags is 'Answers with a number, name or quotation that stands in no context.';
