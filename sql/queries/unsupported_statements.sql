-- What did the live strategy's answers say that the retrieved text does not support, and why?
select
    q.question,
    a.answer,
    s.text as statement,
    s.reason
from live_history as h
join ragas_statements as s on s.strategy = h.strategy
join gold_questions as q on q.question_id = s.question_id
left join answers as a on a.strategy = s.strategy and a.question_id = s.question_id
where h.live_until is null and s.metric = 'faithfulness' and s.verdict = 0
order by q.question_id, s.judgement, s.statement;
