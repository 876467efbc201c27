# Shortcuts for frequent tasks. `just` lists them; each recipe is plain cargo.

_list:
    @just --list --unsorted

# Open the dashboard
run *args:
    cargo run -- {{ args }}

# Run every test
test *args:
    cargo test {{ args }}

# Repeat the tests, each time with fresh seeds: `just properties 20 --lib concurrency`
properties times="10" *args:
    for _ in $(seq {{ times }}); do cargo test {{ args }} || exit 1; done

# Run everything that a merge needs
ci:
    .ci/run

# Format everything
fmt:
    cargo fmt

# Run the lints; warnings are errors
lint:
    cargo clippy --all-targets -- -D warnings

# Measure the bounds
bench *args:
    cargo bench {{ args }}

# Build and open the documentation of the crate
doc:
    cargo doc --no-deps --open

# Write the generated parts of the documents again
docs:
    ROUNDTABLE_WRITE_DOCS=1 cargo test --lib pages

# Draw the README's picture again
readme:
    cargo run --quiet -- picture checkout-launch --flag legal_analyst=on@round:2 --animate > assets/round-table.svg

# Build the documents as a site, into target/site (needs mdbook)
site:
    cargo build
    assets/site/build target/debug/roundtable target/site

# Print the JSON schema of the scenario format, for editors
schema:
    cargo run --quiet -- schema

# Check licences, advisories and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny check
