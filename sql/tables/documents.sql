create table documents (
    doc_id varchar primary key,
    collection varchar not null,
    path varchar not null,
    doc_rev varchar not null,
    media_type varchar,
    size bigint,
    modified_at timestamptz,
    status varchar not null,
    error varchar,
    cure varchar,
    parser varchar,
    parse_key varchar,
    text_sha varchar,
    elements_sha varchar,
    n_chars bigint,
    n_elements bigint,
    language varchar,
    language_confidence double
);

comment on table documents is 'One row per document now in the corpus, parsed or not. The canonical text itself is left out; chunks hold its parts.';
comment on column documents.doc_id is 'Collection and relative path: "help-center/en/refunds.md". Stays the same when the document is edited.';
comment on column documents.collection is 'The configured set of documents it belongs to.';
comment on column documents.path is 'Path inside the collection''s folder, with forward slashes.';
comment on column documents.doc_rev is 'sha256 of the file''s bytes, hexadecimal: changes exactly when the file does.';
comment on column documents.media_type is 'What the content was recognised as, for example text/markdown.';
comment on column documents.size is 'Size of the file in bytes.';
comment on column documents.modified_at is 'Modification time of the file when it was read.';
comment on column documents.status is 'ok: parsed and indexed. empty: holds no text. Anything else (failed, unsupported, too_large, encrypted ...): not indexed, see error and cure.';
comment on column documents.error is 'Why there is no text; with status ok, what was read otherwise than hoped. NULL if nothing.';
comment on column documents.cure is 'What to do about the error; NULL if there is none.';
comment on column documents.parser is 'The format reader that was used.';
comment on column documents.parse_key is 'Digest of bytes, parser, parser version and settings: equal key, equal text.';
comment on column documents.text_sha is 'sha256 of the canonical text.';
comment on column documents.elements_sha is 'sha256 of the elements found in the text.';
comment on column documents.n_chars is 'Length of the canonical text in Unicode code points; 0 unless status is ok.';
comment on column documents.n_elements is 'Number of elements (headings, paragraphs, tables ...) found.';
comment on column documents.language is 'Language most of its prose is in (ISO 639-1: en, pt, ja ...). NULL for source code, for too little text, and where it is in doubt.';
comment on column documents.language_confidence is 'How sure the detector is of the language, 0.5 to 1; NULL without a language.';
