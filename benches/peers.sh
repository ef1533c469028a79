#!/usr/bin/env bash
# Whole queries against what a person would write today, in one run. Installs its own rivals.
#
#     benches/peers.sh                          a generated table of 5,000,000 x 50
#     benches/peers.sh FILE.parquet LABEL K     a file of yours, label as a number
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/.venv" ] || { python3 -m venv "$here/.venv" && "$here/.venv/bin/pip" install --quiet numpy pyarrow scikit-learn; }
exec "$here/.venv/bin/python" "$here/peers.py" "$@"
