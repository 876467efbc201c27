# What is done often, by name. `just` lists it; each recipe is plain cargo.

_list:
    @just --list --unsorted

# Open the dashboard
run *args:
    cargo run --release -- {{ args }}

# Every test
test *args:
    cargo test {{ args }}

# The tests again and again, each time with fresh seeds: `just properties 20 --test concurrency`
properties times="10" *args:
    for _ in $(seq {{ times }}); do cargo test {{ args }} || exit 1; done

# All that a merge needs
ci:
    .ci/run

# Format everything
fmt:
    cargo fmt

# Lints, warnings denied
lint:
    cargo clippy --all-targets -- -D warnings

# The bounds, measured
bench *args:
    cargo bench {{ args }}

# Documentation of the crate
doc:
    cargo doc --no-deps --open

# Draw the README's picture and key table anew
readme:
    ROUNDTABLE_BLESS=1 cargo test --test readme

# The JSON schema of the scenario format, for an editor
schema:
    cargo run --quiet -- schema

# Licences, advisories and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny check
