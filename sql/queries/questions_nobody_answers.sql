-- Which questions does no strategy answer, and where should the answer have been found?
select
    question,
    language,
    round(best_recall, 2) as best_recall,
    n_answers,
    n_abstained,
    documents,
    left(quotes[1], 60) as first_quote
from unanswered_questions
order by best_recall, question_id;
