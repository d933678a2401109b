create view questions_lost_and_won as
select
    c.baseline,
    c.strategy,
    c.change,
    c.question_id,
    q.question,
    q.language,
    q.tags,
    c.metric,
    c.baseline_value,
    c.value,
    c.value - c.baseline_value as difference,
    e.quotes,
    e.documents
from question_changes as c
left join gold_questions as q on q.question_id = c.question_id
left join question_evidence as e on e.question_id = c.question_id
order by c.strategy, difference, c.question_id;

comment on view questions_lost_and_won is 'What a change of strategy would take from and give to whom: the questions that moved by half or more, worst losses first.';
comment on column questions_lost_and_won.baseline is 'The strategy compared with.';
comment on column questions_lost_and_won.strategy is 'The strategy compared.';
comment on column questions_lost_and_won.change is 'won or lost.';
comment on column questions_lost_and_won.question_id is 'The question.';
comment on column questions_lost_and_won.question is 'The question as asked; NULL if it has been withdrawn since.';
comment on column questions_lost_and_won.language is 'Its language.';
comment on column questions_lost_and_won.tags is 'Its labels.';
comment on column questions_lost_and_won.metric is 'The compared score.';
comment on column questions_lost_and_won.baseline_value is 'Score of the baseline.';
comment on column questions_lost_and_won.value is 'Score of the strategy.';
comment on column questions_lost_and_won.difference is 'value minus baseline_value.';
comment on column questions_lost_and_won.quotes is 'The words that should be retrieved.';
comment on column questions_lost_and_won.documents is 'The documents they stand in.';
