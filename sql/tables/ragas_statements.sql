create table ragas_statements (
    strategy varchar not null,
    question_id varchar not null,
    metric varchar not null,
    judgement bigint not null,
    statement bigint not null,
    source varchar,
    text varchar,
    verdict bigint check (verdict in (0, 1)),
    reason varchar
);

comment on table ragas_statements is 'The judge''s verdict on each statement, with its reason. Key: strategy, question_id, metric, judgement, statement.';
comment on column ragas_statements.strategy is 'The strategy: strategies.strategy.';
comment on column ragas_statements.question_id is 'The question: gold_questions.question_id.';
comment on column ragas_statements.metric is 'The metric: ragas_scores.metric.';
comment on column ragas_statements.judgement is 'Number of the judgement, from 0; more than one if judgements are repeated.';
comment on column ragas_statements.statement is 'Number of the statement within its judgement, from 0.';
comment on column ragas_statements.source is 'What the text is: a statement of the answer, of the reference answer, a passage (cut to 200 characters), or a question the judge derived from the answer.';
comment on column ragas_statements.text is 'The statement, as the judge worded it.';
comment on column ragas_statements.verdict is '1 or 0: the contexts support it (factual_correctness: the other text does); the passage helped; the answer is not evasive.';
comment on column ragas_statements.reason is 'Why, in the judge''s words.';
