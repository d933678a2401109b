create view leaderboard as
with
-- Means over the questions that can be scored today; NULL scores are left out of their mean.
retrieval as (
    select
        strategy,
        count(primary_value) as n_questions,
        avg(primary_value) as primary_mean,
        avg(recall_at_5) as recall_at_5,
        avg(precision_at_5) as precision_at_5,
        avg(iou_at_5) as iou_at_5,
        avg(mrr_at_5) as mrr_at_5,
        avg(ndcg_at_5) as ndcg_at_5,
        avg(recall_at_500_tokens) as recall_at_500_tokens,
        avg(recall_at_1000_tokens) as recall_at_1000_tokens,
        avg(recall_at_2000_tokens) as recall_at_2000_tokens,
        avg(context_tokens_at_5) as mean_context_tokens
    from question_scores
    group by strategy
),
-- Scores of what the strategy was before its settings changed are shown, and marked.
scored_as as (
    select s.strategy, bool_and(r.strategy_digest = s.strategy_digest) as is_current
    from strategies as s
    join retrieval_scores as r on r.strategy = s.strategy
    group by s.strategy
),
cut as (
    select chunker_version, count(*) as chunks, avg(n_tokens) as mean_tokens
    from chunks
    where searched
    group by chunker_version
),
decision as (
    select strategy, max(verdict) as verdict, max(p_best) as p_best
    from strategy_comparisons
    where is_primary
    group by strategy
    having count(*) = 1  -- against two baselines there is no one verdict
),
live as (
    select strategy
    from live_history
    where live_until is null
)
select
    s.strategy,
    live.strategy is not null as is_live,
    s.chunker_version,
    s.embedding_model,
    s.profile,
    coalesce(r.n_questions, 0) as n_questions,
    r.primary_mean,
    r.recall_at_5,
    r.precision_at_5,
    r.iou_at_5,
    r.mrr_at_5,
    r.ndcg_at_5,
    r.recall_at_500_tokens,
    r.recall_at_1000_tokens,
    r.recall_at_2000_tokens,
    r.mean_context_tokens,
    coalesce(u.chunks, 0) as chunks,
    u.mean_tokens as mean_chunk_tokens,
    f.mean_scored as faithfulness,
    coalesce(f.n_scored, 0) as faithfulness_n_scored,
    coalesce(f.n_total, 0) as faithfulness_n_total,
    f.coverage as faithfulness_coverage,
    f.mean_if_missing_0 as faithfulness_low,
    f.mean_if_missing_1 as faithfulness_high,
    c.mean_scored as context_recall,
    coalesce(c.n_scored, 0) as context_recall_n_scored,
    coalesce(c.n_total, 0) as context_recall_n_total,
    c.coverage as context_recall_coverage,
    c.mean_if_missing_0 as context_recall_low,
    c.mean_if_missing_1 as context_recall_high,
    p.mean_scored as context_precision,
    coalesce(p.n_scored, 0) as context_precision_n_scored,
    coalesce(p.n_total, 0) as context_precision_n_total,
    p.coverage as context_precision_coverage,
    p.mean_if_missing_0 as context_precision_low,
    p.mean_if_missing_1 as context_precision_high,
    k.mean_scored as factual_correctness,
    coalesce(k.n_scored, 0) as factual_correctness_n_scored,
    coalesce(k.n_total, 0) as factual_correctness_n_total,
    k.coverage as factual_correctness_coverage,
    k.mean_if_missing_0 as factual_correctness_low,
    k.mean_if_missing_1 as factual_correctness_high,
    v.mean_scored as answer_relevancy,
    coalesce(v.n_scored, 0) as answer_relevancy_n_scored,
    coalesce(v.n_total, 0) as answer_relevancy_n_total,
    v.coverage as answer_relevancy_coverage,
    v.mean_if_missing_0 as answer_relevancy_low,
    v.mean_if_missing_1 as answer_relevancy_high,
    d.verdict,
    d.p_best,
    e.reindex_cost,
    e.reindex_currency,
    e.storage_cost_per_month,
    e.storage_currency,
    a.is_current as scores_are_current
from strategies as s
left join retrieval as r on r.strategy = s.strategy
left join scored_as as a on a.strategy = s.strategy
left join cut as u on u.chunker_version = s.chunker_version
left join score_coverage as f on f.strategy = s.strategy and f.metric = 'faithfulness'
left join score_coverage as c on c.strategy = s.strategy and c.metric = 'context_recall'
left join score_coverage as p on p.strategy = s.strategy and p.metric = 'context_precision'
left join score_coverage as k on k.strategy = s.strategy and k.metric = 'factual_correctness'
left join score_coverage as v on v.strategy = s.strategy and v.metric = 'answer_relevancy'
left join decision as d on d.strategy = s.strategy
left join strategy_costs as e on e.strategy = s.strategy
left join live on live.strategy = s.strategy
order by r.primary_mean desc nulls last, s.strategy;

comment on view leaderboard is 'One row per declared strategy, best mean first. The order of the means is not a verdict: read verdict, and the bounds of whatever is not covered.';
comment on column leaderboard.strategy is 'The strategy.';
comment on column leaderboard.is_live is 'True for the strategy that serves now.';
comment on column leaderboard.chunker_version is 'How documents are cut.';
comment on column leaderboard.embedding_model is 'The embedding model.';
comment on column leaderboard.profile is 'The retrieval profile.';
comment on column leaderboard.n_questions is 'Questions with a value of the score that decides.';
comment on column leaderboard.primary_mean is 'Mean of the score that decides: see primary_metric.';
comment on column leaderboard.recall_at_5 is 'Mean share of the evidence among the first 5 chunks.';
comment on column leaderboard.precision_at_5 is 'Mean share of the first 5 chunks that is evidence.';
comment on column leaderboard.iou_at_5 is 'Mean of recall and precision in one: evidence covered, over what was retrieved and what was not found.';
comment on column leaderboard.mrr_at_5 is 'Mean reciprocal rank of the first of 5 chunks to hold at least half a quote.';
comment on column leaderboard.ndcg_at_5 is 'Mean of how early the first 5 chunks hold every quote; 1 is the best order.';
comment on column leaderboard.recall_at_500_tokens is 'Mean share of the evidence within 500 context tokens: comparable between chunk sizes.';
comment on column leaderboard.recall_at_1000_tokens is 'Mean share of the evidence within 1,000 context tokens.';
comment on column leaderboard.recall_at_2000_tokens is 'Mean share of the evidence within 2,000 context tokens.';
comment on column leaderboard.mean_context_tokens is 'Mean tokens of the first 5 chunks: what an answer costs to read.';
comment on column leaderboard.chunks is 'Chunks of the chunker version in the whole corpus, without those that are only read.';
comment on column leaderboard.mean_chunk_tokens is 'Mean tokens of a chunk.';
comment on column leaderboard.faithfulness is 'Share of an answer''s statements that the contexts support: mean over the answers that were judged; NULL if none was.';
comment on column leaderboard.faithfulness_n_scored is 'Answers with a value of faithfulness.';
comment on column leaderboard.faithfulness_n_total is 'Answers to which it applies.';
comment on column leaderboard.faithfulness_coverage is 'faithfulness_n_scored over faithfulness_n_total.';
comment on column leaderboard.faithfulness_low is 'The mean if every missing value were 0.';
comment on column leaderboard.faithfulness_high is 'The mean if every missing value were 1.';
comment on column leaderboard.context_recall is 'Share of the reference answer''s statements that the contexts support: mean over the questions that were judged; NULL if none was.';
comment on column leaderboard.context_recall_n_scored is 'Questions with a value of context_recall.';
comment on column leaderboard.context_recall_n_total is 'Questions to which it applies.';
comment on column leaderboard.context_recall_coverage is 'context_recall_n_scored over context_recall_n_total.';
comment on column leaderboard.context_recall_low is 'The mean if every missing value were 0.';
comment on column leaderboard.context_recall_high is 'The mean if every missing value were 1.';
comment on column leaderboard.context_precision is 'How early the contexts stand that helped: mean over the questions that were judged; NULL if none was.';
comment on column leaderboard.context_precision_n_scored is 'Questions with a value of context_precision.';
comment on column leaderboard.context_precision_n_total is 'Questions to which it applies.';
comment on column leaderboard.context_precision_coverage is 'context_precision_n_scored over context_precision_n_total.';
comment on column leaderboard.context_precision_low is 'The mean if every missing value were 0.';
comment on column leaderboard.context_precision_high is 'The mean if every missing value were 1.';
comment on column leaderboard.factual_correctness is 'F1 of the claims of answer and reference answer: mean over the answers that were judged; NULL if none was.';
comment on column leaderboard.factual_correctness_n_scored is 'Answers with a value of factual_correctness.';
comment on column leaderboard.factual_correctness_n_total is 'Answers to which it applies.';
comment on column leaderboard.factual_correctness_coverage is 'factual_correctness_n_scored over factual_correctness_n_total.';
comment on column leaderboard.factual_correctness_low is 'The mean if every missing value were 0.';
comment on column leaderboard.factual_correctness_high is 'The mean if every missing value were 1.';
comment on column leaderboard.answer_relevancy is 'How like the question are the questions that the answer answers: mean over the answers that were judged; NULL if none was.';
comment on column leaderboard.answer_relevancy_n_scored is 'Answers with a value of answer_relevancy.';
comment on column leaderboard.answer_relevancy_n_total is 'Answers to which it applies.';
comment on column leaderboard.answer_relevancy_coverage is 'answer_relevancy_n_scored over answer_relevancy_n_total.';
comment on column leaderboard.answer_relevancy_low is 'The mean if every missing value were 0.';
comment on column leaderboard.answer_relevancy_high is 'The mean if every missing value were 1.';
comment on column leaderboard.verdict is 'Against the baseline on the primary metric: better, worse, or cannot tell; "baseline" for the baseline itself; NULL if not compared.';
comment on column leaderboard.p_best is 'Share of resamples in which this strategy is the best of all.';
comment on column leaderboard.reindex_cost is 'What embedding its whole index anew would cost; NULL if that is not known.';
comment on column leaderboard.reindex_currency is 'Currency of reindex_cost.';
comment on column leaderboard.storage_cost_per_month is 'What keeping its index costs a month; NULL if that is not known.';
comment on column leaderboard.storage_currency is 'Currency of storage_cost_per_month.';
comment on column leaderboard.scores_are_current is 'False if the strategy''s settings changed after it was scored; NULL if it never was.';
