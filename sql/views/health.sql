create view health as
with
document_checks as (
    select
        'documents' as subject,
        'could not be read' as what,
        count(*) filter (where status not in ('ok', 'partial', 'empty')) as affected,
        count(*) as checked,
        'error' as severity,
        'document_status says why and what to do for each' as cure
    from documents
    union all
    select
        'documents',
        'hold no text',
        count(*) filter (where status = 'empty'),
        count(*),
        'warning',
        'fill them, or exclude them in corpus.yaml'
    from documents
    union all
    select
        'documents',
        'are indexed in part',
        count(*) filter (where status = 'partial'),
        count(*),
        'warning',
        'documents.error names what is missing of each'
    from documents
    union all
    select
        'documents',
        'are served as they were, their newest content cannot be read',
        count(*) filter (where stale_since is not null),
        count(*),
        'error',
        'read documents.error, and correct the file'
    from documents
),
-- Every document with a text belongs into every declared index.
held as (
    select distinct doc_id, index_version
    from embedded_chunks
),
index_pairs as (
    select h.doc_id is not null as is_held
    from documents as d
    cross join declared_indexes as i
    left join held as h on h.doc_id = d.doc_id and h.index_version = i.index_version
    where d.status in ('ok', 'partial')
),
index_checks as (
    select
        'index_versions' as subject,
        'lack a document that has a text' as what,
        count(*) filter (where not is_held) as affected,
        count(*) as checked,
        'error' as severity,
        'make build; if it stays, the chunker leaves the whole document out' as cure
    from index_pairs
    union all
    select
        'index_versions',
        'hold chunks that exist no more',
        count(*) filter (where c.chunk_id is null),
        count(*),
        'error',
        'make build'
    from embedded_chunks as x
    left join chunks as c on c.chunk_id = x.chunk_id
    union all
    select
        'index_versions',
        'hold chunks longer than the model reads at once',
        count(*) filter (where n_windows > 1),
        count(*),
        'warning',
        'declare a chunker version with fewer tokens, or a model that reads more'
    from embedded_chunks
),
chunk_checks as (
    select
        'chunks' as subject,
        'are over the budget of their version' as what,
        count(*) filter (where over_budget) as affected,
        count(*) as checked,
        'warning' as severity,
        'look at their remark; a table row or a word that cannot be cut is kept whole' as cure
    from chunks
    union all
    select
        'chunks',
        'came out otherwise than declared',
        count(*) filter (where remark is not null and not coalesce(over_budget, false)),
        count(*),
        'warning',
        'read chunks.remark, where it says why'
    from chunks
    union all
    select
        'chunks',
        'repeat the text of another one of their version and size',
        coalesce(sum(chunks * duplicate_share), 0)::bigint,
        coalesce(sum(chunks), 0)::bigint,
        'warning',
        'exclude copies in corpus.yaml, use clean, or a retrieval profile with dedupe'
    from chunk_health
),
question_checks as (
    select
        'questions' as subject,
        'have evidence that is no longer found' as what,
        count(*) filter (where status = 'stale') as affected,
        count(*) filter (where status in ('active', 'stale')) as checked,
        'error' as severity,
        'correct the quotes that stale_questions lists, in the file it names' as cure
    from gold_questions
    union all
    select
        'questions',
        'have a quote that stands in several places',
        count(distinct question_id) filter (where status = 'ambiguous'),
        count(distinct question_id),
        'warning',
        'quote more words, or give the occurrence'
    from gold_evidence
    union all
    select
        'questions',
        'are drafts that nobody approved',
        count(*) filter (where status = 'draft'),
        count(*),
        'warning',
        'read them and take their status out of the questions file, or delete them'
    from gold_questions
),
score_checks as (
    select
        'scores' as subject,
        'are missing for an active question' as what,
        count(*) filter (where s.recall_at_5 is null) as affected,
        count(*) as checked,
        'error' as severity,
        'make build' as cure
    from question_matrix as m
    left join question_scores as s on s.strategy = m.strategy and s.question_id = m.question_id
    union all
    select
        'scores',
        'are of settings that a strategy no longer has',
        count(*) filter (where not scores_are_current),
        count(scores_are_current),
        'error',
        'make build'
    from leaderboard
    union all
    select
        'scores',
        'show a chunk that has been replaced since',
        count(*) filter (where c.chunk_id is null),
        count(*),
        'warning',
        'make build scores what changed'
    from retrieved_chunks as r
    join strategies as s on s.strategy = r.strategy
    left join chunks as c on c.chunk_id = r.chunk_id
),
declared_answers as (
    select a.status, a.issues
    from answers as a
    join strategies as s on s.strategy = a.strategy
),
answer_checks as (
    select
        'answers' as subject,
        'failed' as what,
        count(*) filter (where status = 'error') as affected,
        count(*) as checked,
        'error' as severity,
        'read answers.error; make build asks again for those that failed' as cure
    from declared_answers
    union all
    select
        'answers',
        'cite what is not there',
        count(*) filter (where len(issues) > 0),
        count(*) filter (where status = 'ok'),
        'warning',
        'read answers.issues; a stronger answer_model cites better'
    from declared_answers
),
-- Beyond ragas.max_questions nothing was asked for: nothing is missing.
asked_of_the_judge as (
    select r.status
    from ragas_scores as r
    join strategies as s on s.strategy = r.strategy
    where
        r.status in ('ok', 'error', 'skipped') and r.error_kind is distinct from 'max_questions'
),
judgement_checks as (
    select
        'judgements' as subject,
        'failed' as what,
        count(*) filter (where status = 'error') as affected,
        count(*) as checked,
        'error' as severity,
        'read ragas_scores.error; make build judges those again' as cure
    from asked_of_the_judge
    union all
    select
        'judgements',
        'were skipped',
        count(*) filter (where status = 'skipped'),
        count(*),
        'warning',
        'read ragas_scores.error; without an endpoint, set OPENAI_BASE_URL or OPENAI_API_KEY'
    from asked_of_the_judge
),
comparison_checks as (
    select
        'comparisons' as subject,
        'are of another measurement' as what,
        count(*) filter (where verdict = 'not comparable') as affected,
        count(*) as checked,
        'error' as severity,
        'make build; strategy_comparisons.changed says what was measured otherwise' as cure
    from strategy_comparisons
),
live_checks as (
    select
        'live' as subject,
        'was promoted against the gate' as what,
        count(*) filter (where forced) as affected,
        count(*) as checked,
        'warning' as severity,
        'make compare with what was live before; make rollback returns to it' as cure
    from live_history
    where live_until is null
    union all
    select
        'live',
        'is a strategy that corpus.yaml no longer declares',
        count(*) filter (where s.strategy is null),
        count(*),
        'error',
        'declare it again, or promote another'
    from live_history as h
    left join strategies as s on s.strategy = h.strategy
    where h.live_until is null
),
checks as (
    from document_checks
    union all
    from index_checks
    union all
    from chunk_checks
    union all
    from question_checks
    union all
    from score_checks
    union all
    from answer_checks
    union all
    from judgement_checks
    union all
    from comparison_checks
    union all
    from live_checks
)
select
    subject,
    what,
    affected,
    checked,
    case when affected > 0 then severity else 'ok' end as severity,
    case when affected > 0 then cure end as cure
from checks
where checked > 0
order by array_position(['error', 'warning', 'ok'], severity), subject, what;

comment on view health is 'What is wrong, how much of it, and what to do: one row per check that there is something to check for, the worst first. Subject and what read as a sentence.';
comment on column health.subject is 'What was looked at: documents, chunks, index_versions, questions, scores, answers, judgements, comparisons, live.';
comment on column health.what is 'What is wrong with those affected.';
comment on column health.affected is 'How many are; 0 if all is well.';
comment on column health.checked is 'Of how many. For index_versions, pairs of a document or chunk and an index; for scores, pairs of a question and a strategy. Strategies that are no longer declared are not looked at.';
comment on column health.severity is 'error: something is missing or wrong; warning: to be looked at; ok: affected is 0.';
comment on column health.cure is 'What to do; NULL if all is well.';
