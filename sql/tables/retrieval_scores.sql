create table retrieval_scores (
    strategy varchar not null,
    strategy_digest varchar not null,
    question_id varchar not null,
    -- The cut-off has its own column: a name like recall@5 would match no view.
    metric varchar not null check (not contains(metric, '@')),
    cutoff varchar not null,
    value double check (not isnan(value))
);

comment on table retrieval_scores is 'How well the evidence of a question was retrieved, measured on character spans. Key: strategy, question_id, metric, cutoff.';
comment on column retrieval_scores.strategy is 'The strategy: strategies.strategy.';
comment on column retrieval_scores.strategy_digest is 'What the strategy was when it was scored; differs from strategies.strategy_digest until it is scored again.';
comment on column retrieval_scores.question_id is 'The question: gold_questions.question_id.';
comment on column retrieval_scores.metric is 'recall, precision, iou, hit, mrr or ndcg, from 0 to 1; context_tokens, in tokens of the index''s model, less is better.';
comment on column retrieval_scores.cutoff is 'How much of the result counts: 5 (the first five), 1000t (as many as fit 1,000 context tokens), served (what the profile serves). Written together: recall@1000t.';
comment on column retrieval_scores.value is 'The score; NULL where it is not defined.';
