# `make demo` runs everything on the sample corpus; `make test` runs every test. Both set up .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
RUN := $(BIN)/python -m
FOLDER = $(or $(DATA),$(error which folder? make $@ DATA=folder))

export PYTHONUNBUFFERED := 1
export DAGSTER_DISABLE_TELEMETRY := yes
export RAGAS_DO_NOT_TRACK := true
# Empty is off: without what Python keeps compiled, every start takes twice as long.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo build dev check ask compare report gate plan promote rollback confirm-deletions reconcile repair retire maintain test pytest test-bucket lint format bench bench-retrieval bench-languages bench-search bench-chunkers bench-embedding bench-parsing bench-publication bench-lifecycle bench-scale answers clean

help:             ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 20

$(INSTALLED): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (about 1.7 GB unpacked) ..."
	@$(RUN) pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python \
		-c constraints.txt --build-constraint constraints.txt -e '.[dev]'
	@touch $@

install: $(INSTALLED)  ## create .venv and install the pinned versions

demo: $(INSTALLED)     ## index and compare the sample corpus, then print the leaderboard
	@$(RUN) dagster_defs.materialize --promote-first

build: $(INSTALLED)    ## bring everything up to date once
	@$(RUN) dagster_defs.materialize

dev: $(INSTALLED)      ## Dagster UI and daemon on http://127.0.0.1:3000
	@$(RUN) dagster_defs.dev

check: $(INSTALLED)    ## are corpus.yaml and the question files right?
	@$(RUN) chunking_assets.config
	@$(RUN) evals.gold_questions

ask: $(INSTALLED)      ## ask the live index: make ask Q="How long do refunds take?"
	@$(RUN) chunking_assets.retrieval "$(Q)"

compare: $(INSTALLED)  ## one strategy against another: make compare A=name B=name [METRIC=recall@5]
	@$(RUN) evals.strategy_comparison compare "$(A)" "$(B)" $(if $(METRIC),--metric "$(METRIC)")

report: $(INSTALLED)   ## write the page for the meeting from what is stored, and say where it is
	@$(RUN) evals.strategy_comparison.meeting_report

gate: $(INSTALLED)     ## may it replace the live one? make gate STRATEGY=name [AGAINST=name]
	@$(RUN) evals.strategy_comparison gate "$(STRATEGY)" $(if $(AGAINST),--against "$(AGAINST)")

plan: $(INSTALLED)     ## what `make build` would do and cost; writes nothing
	@$(RUN) dagster_defs.plan

promote: $(INSTALLED)  ## make a strategy live: make promote STRATEGY=name [FORCE=1]
	@$(RUN) dagster_defs.live promote "$(STRATEGY)" $(if $(FORCE),--force)

rollback: $(INSTALLED) ## return to what was live before
	@$(RUN) dagster_defs.live rollback

confirm-deletions: $(INSTALLED) ## take a shard's missing documents as deleted: SHARD=name
	@$(RUN) dagster_defs.materialize --confirm-deletions "$(SHARD)"

reconcile: $(INSTALLED) ## do chunk sets, ledgers and tables agree?
	@$(RUN) chunking_assets.live_index reconcile

repair: $(INSTALLED)   ## make good what differs, and nothing else
	@$(RUN) chunking_assets.live_index repair

retire: $(INSTALLED)   ## forget a version no longer declared: make retire VERSION=name@n
	@$(RUN) chunking_assets.live_index retire "$(VERSION)"

maintain: $(INSTALLED) ## clean up, and say what takes the space
	@$(RUN) chunking_assets.live_index maintain

test: $(INSTALLED)     ## linters, type checker and every test
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(INSTALLED)
	@$(RUN) pytest -n 3

test-bucket: $(INSTALLED) ## the tests of changes, faults and the live index, each in a folder and in a bucket
	@CORPUS_TEST_EVERYWHERE=1 $(RUN) pytest -n 2 tests/lifecycle tests/faults tests/live_index tests/chunk_embeddings tests/dagster

lint: $(INSTALLED)     ## linters and type checker
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) sqlfluff lint --disable-progress-bar sql
	@$(RUN) mypy

format: $(INSTALLED)   ## format the code
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

bench: $(INSTALLED)    ## the public chunking benchmark: make bench DATA=../shared/data/chunking_eval
	@$(RUN) benchmarks.chunking "$(FOLDER)"

bench-retrieval: $(INSTALLED) ## our retrieval profiles on the public benchmark: make bench-retrieval DATA=...
	@$(RUN) benchmarks.retrieval "$(FOLDER)"

bench-languages: $(INSTALLED) ## recall on the sample corpus by the language of the question
	@$(RUN) benchmarks.question_languages

bench-search: $(INSTALLED) ## what a question costs beside a bare LanceDB query, and where ANN pays
	@$(RUN) benchmarks.search

bench-chunkers: $(INSTALLED) ## how fast chunkers are, other libraries' beside them: make bench-chunkers DATA=...
	@$(RUN) benchmarks.chunkers "$(FOLDER)"

bench-embedding: $(INSTALLED) ## embedding beside the bare runtime, and the vector cache: make bench-embedding DATA=...
	@$(RUN) benchmarks.embedding "$(FOLDER)"

bench-parsing: $(INSTALLED) ## how fast files are parsed and what is found, markitdown beside: make bench-parsing DATA=folder
	@$(RUN) benchmarks.parsing "$(FOLDER)"

bench-lifecycle: $(INSTALLED) ## what a change costs and how that grows, LlamaIndex's ingestion beside: [DOCUMENTS=100000]
	@$(RUN) benchmarks.lifecycle --command $(if $(DOCUMENTS),--documents "$(DOCUMENTS)")

bench-scale: $(INSTALLED)    ## how each stage grows to a million chunks, and what a second worker brings
	@$(RUN) benchmarks.scale

bench-publication: $(INSTALLED) ## what publishing a million rows for analysts costs
	@$(RUN) benchmarks.publication

answers: $(INSTALLED)  ## write the answers of the worked queries anew: sql/queries/*.answer.md
	@WRITE_ANSWERS=1 $(RUN) pytest tests/sql/test_answers.py

clean:                 ## forget everything derived from the documents
	rm -rf .corpus
