-- Which documents hold answers that are not found, whatever the strategy?
-- Where even the best strategy is low, look at the document and its questions first.
select
    doc_id,
    n_questions,
    round(mean, 3) as mean_of_all,
    round(live_mean, 3) as mean_of_live,
    best_strategy,
    round(best_mean, 3) as best_mean
from worst_documents
where mean < 1
order by best_mean, mean_of_all, doc_id
limit 10;
