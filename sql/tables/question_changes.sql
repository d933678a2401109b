create table question_changes (
    baseline varchar not null,
    strategy varchar not null,
    question_id varchar not null,
    change varchar not null,
    metric varchar not null,
    baseline_value double,
    value double
);

comment on table question_changes is 'The questions that a strategy won or lost against the baseline: the primary metric moved by half or more. Smaller moves are mostly chunk borders. Key: baseline, strategy, question_id.';
comment on column question_changes.baseline is 'The strategy compared with.';
comment on column question_changes.strategy is 'The strategy compared.';
comment on column question_changes.question_id is 'The question: gold_questions.question_id.';
comment on column question_changes.change is 'won (at least 0.5 better than the baseline) or lost (at least 0.5 worse).';
comment on column question_changes.metric is 'The primary metric, name and cut-off: recall@5.';
comment on column question_changes.baseline_value is 'Score of the baseline on this question.';
comment on column question_changes.value is 'Score of the strategy on this question.';
