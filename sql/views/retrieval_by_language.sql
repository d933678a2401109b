create view retrieval_by_language as
with
asked as (
    select question_id, language from gold_questions
)
select
    a.language,
    s.strategy,
    count(s.primary_value) as n_questions,
    avg(s.primary_value) as primary_mean,
    avg(s.recall_at_5) as recall_at_5,
    avg(s.precision_at_5) as precision_at_5,
    avg(s.ndcg_at_5) as ndcg_at_5,
    avg(s.recall_at_1000_tokens) as recall_at_1000_tokens
from question_scores as s
join asked as a on a.question_id = s.question_id
group by a.language, s.strategy
order by a.language, primary_mean desc, s.strategy;

comment on view retrieval_by_language is 'Mean retrieval scores per strategy and question language. Small groups say little: read n_questions first.';
comment on column retrieval_by_language.language is 'Language of the questions, a BCP 47 tag: en, fr, pt-BR ...';
comment on column retrieval_by_language.strategy is 'The strategy.';
comment on column retrieval_by_language.n_questions is 'Questions scored in the group.';
comment on column retrieval_by_language.primary_mean is 'Mean of the score that decides: see primary_metric.';
comment on column retrieval_by_language.recall_at_5 is 'Mean share of the evidence among the first 5 chunks.';
comment on column retrieval_by_language.precision_at_5 is 'Mean share of the first 5 chunks that is evidence.';
comment on column retrieval_by_language.ndcg_at_5 is 'Mean of how early the first 5 chunks hold every quote; 1 is the best order.';
comment on column retrieval_by_language.recall_at_1000_tokens is 'Mean share of the evidence within 1,000 context tokens.';
