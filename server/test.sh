#!/usr/bin/env bash
# Builds the program that serves, and tests it with the clients that people use: psql, psycopg, ADBC. All of it on loopback.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v psql > /dev/null; then
    (apt-get update -q && apt-get install -yq --no-install-recommends postgresql-client) > /dev/null
fi
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install -q -r tests/requirements.txt

cargo fmt --check
# Clippy looks at our crate while it is built. To ask it on its own would have it go through 600 packages a second time.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"
cargo test
cargo build
cargo run -q --example distributed > /dev/null
export PURSUIT="${CARGO_TARGET_DIR:-$PWD/target}/debug/pursuit"
# Twice, if the first time the machine was too slow for the limits that are tested.
for test in clients flight cluster faults; do "$venv/bin/python" "tests/$test.py" || "$venv/bin/python" "tests/$test.py"; done
