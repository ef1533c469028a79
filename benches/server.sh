#!/usr/bin/env bash
# A server under load, on loopback: benches/server.sh [connections] [seconds] [pause]. Small and neural selections mixed; says how long they took, what was
# refused, the server's memory before and after, and whether that is what is asked of it.
set -euo pipefail
cd "$(dirname "$0")/.."
connections=${1:-64}
seconds=${2:-60}
if [ "$connections" -gt 200 ] || [ "$seconds" -gt 900 ]; then
    echo 'at most 200 connections and 900 seconds' >&2
    exit 1
fi
profile=${PROFILE:-release}
cargo build --manifest-path server/Cargo.toml $([ "$profile" = release ] && echo --release)
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install -q -r server/tests/requirements.txt
PURSUIT="$PWD/server/target/$([ "$profile" = release ] && echo release || echo debug)/pursuit" PYTHONPATH=server/tests \
    "$venv/bin/python" benches/server.py "$connections" "$seconds" "${3:-2}"
