#!/usr/bin/env bash
# Everything that must hold of the Python package: builds it in the development profile, in an environment of its own, and runs its tests. Needs Rust,
# Python 3.11 or later, and PyPI. What is given is handed to pytest: `python/test.sh -k dbapi`.
set -euo pipefail
cd "$(dirname "$0")"

# The program whose answers are compared with ours; nothing to do after `cargo test`.
(cd .. && cargo build --bin pursuit)
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install -q 'maturin>=1.9,<2'
cargo fmt --check
# Shares what `cargo test` has compiled: the same versions (Cargo.lock), features and profiles.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../target} .venv/bin/maturin develop --features shared --extras test
exec .venv/bin/python -m pytest "$@"
