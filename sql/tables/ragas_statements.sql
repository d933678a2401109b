create table ragas_statements (
    strategy varchar not null,
    question_id varchar not null,
    metric varchar not null,
    statement bigint not null,
    text varchar,
    verdict bigint,
    reason varchar
);

comment on table ragas_statements is 'The judge''s verdict on each statement, with its reason. Key: strategy, question_id, metric, statement.';
comment on column ragas_statements.strategy is 'The strategy: strategies.strategy.';
comment on column ragas_statements.question_id is 'The question: gold_questions.question_id.';
comment on column ragas_statements.metric is 'faithfulness or context_recall: ragas_scores.metric.';
comment on column ragas_statements.statement is 'Number of the statement within its judgement.';
comment on column ragas_statements.text is 'The statement, as the judge split it.';
comment on column ragas_statements.verdict is '1 if the contexts support it, 0 if not.';
comment on column ragas_statements.reason is 'Why, in the judge''s words.';
