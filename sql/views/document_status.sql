create view document_status as
with
quoted as (
    select doc_id, count(distinct question_id) as n_questions
    from gold_evidence
    group by doc_id
)
select
    d.status,
    d.doc_id,
    d.error,
    d.cure,
    d.media_type,
    d.size,
    d.modified_at,
    coalesce(q.n_questions, 0) as questions_affected
from documents as d
left join quoted as q on q.doc_id = d.doc_id
where d.status <> 'ok'
order by questions_affected desc, d.status, d.doc_id;

comment on view document_status is 'The documents that are not in any index, why, and what to do. Those that questions depend on come first.';
comment on column document_status.status is 'empty, failed, unsupported, too_large, encrypted ...';
comment on column document_status.doc_id is 'The document.';
comment on column document_status.error is 'Why it has no text.';
comment on column document_status.cure is 'What to do.';
comment on column document_status.media_type is 'What its content was recognised as.';
comment on column document_status.size is 'Size of the file in bytes.';
comment on column document_status.modified_at is 'Modification time of the file.';
comment on column document_status.questions_affected is 'Gold questions with evidence in it.';
