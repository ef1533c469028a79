#!/usr/bin/env bash
# Datum-wise classification on real data. Installs what it needs.
#
#     benches/datum_wise.sh DATA [PEER.py]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/.venv" ] || python3 -m venv "$here/.venv"
"$here/.venv/bin/python" -c "import matplotlib, pandas, sklearn, pyarrow" 2>/dev/null || "$here/.venv/bin/pip" install --quiet matplotlib pandas scikit-learn pyarrow
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --bin datum_wise
exec "$here/.venv/bin/python" "$here/datum_wise.py" "$@"
