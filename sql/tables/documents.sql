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
    stale_since timestamptz,
    newest_rev varchar,
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
comment on column documents.doc_rev is 'sha256 of the file''s bytes, hexadecimal: changes exactly when the file does. Of a file that is not or cannot be read: unread- and a digest of what its source says of it, or empty.';
comment on column documents.media_type is 'What the content was recognised as, for example text/markdown.';
comment on column documents.size is 'Size of the file in bytes.';
comment on column documents.modified_at is 'Modification time of the file when it was read.';
comment on column documents.status is 'ok: parsed and indexed. partial: indexed, but for what error names. empty: holds no text. Not indexed, see error and cure: needs_ocr (pictures of text), encrypted, unsupported, too_large, suspicious (built to take a reader down), timeout and crashed (both tried again by the next run), failed (damaged), unreadable.';
comment on column documents.error is 'Why there is no text; with status partial, what is missing; with status ok, what was read otherwise than hoped. NULL if nothing.';
comment on column documents.cure is 'What to do about the error; NULL if there is none.';
comment on column documents.stale_since is 'Since when its newest content cannot be read, while the one before is served; NULL if it is up to date. Status, text and doc_rev are those of what is served.';
comment on column documents.newest_rev is 'doc_rev of the newest content where stale_since is set; unread- and a digest, or NULL, if not even its bytes can be read.';
comment on column documents.parser is 'The format reader that was used.';
comment on column documents.parse_key is 'Digest of bytes, parser, parser version and settings: equal key, equal text.';
comment on column documents.text_sha is 'sha256 of the canonical text.';
comment on column documents.elements_sha is 'sha256 of the elements found in the text.';
comment on column documents.n_chars is 'Length of the canonical text in Unicode code points; 0 unless status is ok or partial.';
comment on column documents.n_elements is 'Number of elements (headings, paragraphs, tables ...) found.';
comment on column documents.language is 'Language most of its prose is in (ISO 639-1: en, pt, ja ...). NULL for source code, for too little text, and where it is in doubt.';
comment on column documents.language_confidence is 'How sure the detector is of the language, 0.5 to 1; NULL without a language.';
