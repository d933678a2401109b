-- The scores with one column a score, for the questions that can be scored today. A score measured
-- on evidence that has since moved away is left out, not averaged.
create view question_scores as
with
retrieved as (
    select s.strategy, s.question_id, s.metric || '@' || s.cutoff as measure, s.value
    from retrieval_scores as s
    join gold_questions as q on q.question_id = s.question_id
    where q.status = 'active'
),
-- Where a judge decides, what it said; of answers to unanswerable questions too.
judged as (
    select s.strategy, s.question_id, s.metric as measure, s.value
    from ragas_scores as s
    join primary_metric as p on p.metric = s.metric
    join gold_questions as q on q.question_id = s.question_id
    where s.status = 'ok' and q.status in ('active', 'unanswerable')
),
scored as (
    select m.*, p.metric as primary_metric
    from (
        from retrieved
        union all
        from judged
    ) as m
    cross join primary_metric as p
)
select
    strategy,
    question_id,
    max(value) filter (where measure = primary_metric) as primary_value,
    max(value) filter (where measure = 'recall@5') as recall_at_5,
    max(value) filter (where measure = 'precision@5') as precision_at_5,
    max(value) filter (where measure = 'iou@5') as iou_at_5,
    max(value) filter (where measure = 'mrr@5') as mrr_at_5,
    max(value) filter (where measure = 'ndcg@5') as ndcg_at_5,
    max(value) filter (where measure = 'recall@500t') as recall_at_500_tokens,
    max(value) filter (where measure = 'recall@1000t') as recall_at_1000_tokens,
    max(value) filter (where measure = 'recall@2000t') as recall_at_2000_tokens,
    max(value) filter (where measure = 'context_tokens@5') as context_tokens_at_5
from scored
group by strategy, question_id;

comment on view question_scores is 'One row per strategy and active question, one column per score; the other views average it. Where a judged metric decides, also a row per unanswerable question that has a value.';
comment on column question_scores.strategy is 'The strategy.';
comment on column question_scores.question_id is 'The question.';
comment on column question_scores.primary_value is 'The score that decides: see primary_metric. NULL where it was not had.';
comment on column question_scores.recall_at_5 is 'Share of the evidence''s characters among the first 5 chunks.';
comment on column question_scores.precision_at_5 is 'Share of the first 5 chunks'' characters that are evidence.';
comment on column question_scores.iou_at_5 is 'Evidence covered by the first 5 chunks, over their length and the evidence not covered.';
comment on column question_scores.mrr_at_5 is '1 / rank of the first of 5 chunks to hold at least half a quote; 0 if none does.';
comment on column question_scores.ndcg_at_5 is 'How early the first 5 chunks hold every quote, against one quote a rank from the top.';
comment on column question_scores.recall_at_500_tokens is 'Share of the evidence within the first 500 context tokens.';
comment on column question_scores.recall_at_1000_tokens is 'Share of the evidence within the first 1,000 context tokens.';
comment on column question_scores.recall_at_2000_tokens is 'Share of the evidence within the first 2,000 context tokens.';
comment on column question_scores.context_tokens_at_5 is 'Tokens of the first 5 chunks.';
