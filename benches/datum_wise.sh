#!/usr/bin/env bash
# Datum-wise classification: speed. Installs what it needs.
#
#     benches/datum_wise.sh DATA [PEER.py]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --bin datum_wise
exec "$here/python" "$here/datum_wise.py" "$@"
