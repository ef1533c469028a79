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
cargo test
cargo build
export PURSUIT="$PWD/target/debug/pursuit"
"$venv/bin/python" tests/clients.py
"$venv/bin/python" tests/flight.py
"$venv/bin/python" tests/cluster.py
cargo clippy --all-targets -- -D warnings
