create view document_status as
with
quoted as (
    select doc_id, count(distinct question_id) as n_questions
    from gold_evidence
    group by doc_id
)
select
    case when d.stale_since is null then d.status else 'stale' end as status,
    d.doc_id,
    d.error,
    d.cure,
    d.media_type,
    d.size,
    d.modified_at,
    d.stale_since,
    coalesce(q.n_questions, 0) as questions_affected
from documents as d
left join quoted as q on q.doc_id = d.doc_id
where d.status <> 'ok' or d.stale_since is not null
order by questions_affected desc, status, d.doc_id;

comment on view document_status is 'The documents of which the indexes do not hold all that they say now: left out, held in part, or held as they were; why, and what to do. Those that questions depend on come first.';
comment on column document_status.status is 'stale: an earlier revision is indexed. partial: indexed, but for what error names. Otherwise not indexed: empty, failed, unsupported, too_large, encrypted ...';
comment on column document_status.doc_id is 'The document.';
comment on column document_status.error is 'Why it, or its newest content, has no text.';
comment on column document_status.cure is 'What to do.';
comment on column document_status.media_type is 'What its content was recognised as.';
comment on column document_status.size is 'Size of the file in bytes.';
comment on column document_status.modified_at is 'Modification time of the file.';
comment on column document_status.stale_since is 'Since when an earlier revision is served; NULL if none is.';
comment on column document_status.questions_affected is 'Gold questions with evidence in it.';
