# Everything a developer or CI runs. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help test quick nightly play page dist film bench hostile wasm decode fuzz fmt

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

quick: ## Formatting, clippy and tests of what was changed against main
	@scripts/gate.sh quick

test: ## The gate: everything that must hold before a change lands (the same as CI)
	@scripts/gate.sh test

nightly: ## What takes hours: many seeds, fuzzing, a soak, a real Kubernetes, the start pages from scratch
	@scripts/gate.sh nightly

play: ## Build the game and serve it on this machine
	@scripts/play.sh

page: ## Build the game's page into game/web/dist
	@scripts/build-page.sh

dist: ## Build what is handed out: a program with the page inside, a package for Debian, checksums
	@scripts/dist.sh

film: ## Make the film of the README from a match of bots
	@scripts/film.sh

bench: ## Measure the transport beside its peers
	cargo run --release -p muse-cli --features tools -- bench transport

hostile: ## Attack the real programs, and judge what honest players notice
	cargo build --release -p muse-cli --features tools
	@scripts/hostile.sh "$${CARGO_TARGET_DIR:-target}/release/muse"

wasm: ## Build what runs in a browser for wasm32-unknown-unknown
	@scripts/wasm-check.sh

decode: ## Record a simulated session and read it with the independent decoder
	cargo test --quiet -p muse-transport --test capture
	python3 tests/decoder/test_decoder.py "$${CARGO_TARGET_DIR:-target}/tmp/capture"

fuzz: ## Run all corpora, then every fuzz target for FUZZ_SECONDS seconds (default 60)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} scripts/fuzz-smoke.sh

fmt: ## Format everything
	cargo fmt --all
	cd bench/peers && cargo fmt
	cd bench/peers/bevy && cargo fmt -p muse-bench-bevy -p bevy-muse -p bevy-peers
	cd bindings/bevy/window && cargo fmt
	cd fuzz && cargo fmt
