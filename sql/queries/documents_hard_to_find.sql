-- Which documents hold answers that are not found, whatever the strategy?
with
asked as (
    select distinct e.doc_id, s.strategy, s.question_id, s.recall_at_5
    from gold_evidence as e
    join question_scores as s on s.question_id = e.question_id
)
select
    doc_id,
    count(distinct question_id) as n_questions,
    round(avg(recall_at_5), 3) as mean_recall_at_5,
    round(max(recall_at_5), 3) as best_recall_at_5,
    arg_max(strategy, recall_at_5) as best_strategy
from asked
group by doc_id
order by mean_recall_at_5, doc_id
limit 20;
