#!/usr/bin/env bash
# Our trees against scikit-learn's forest and XGBoost. Installs what it needs.
#
#     benches/trees.sh DATA [TABLE ...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --bin trees
"$here/python" -c 'import xgboost' 2>/dev/null || "$here/python" -m pip install --quiet xgboost
exec "$here/python" "$here/trees.py" "$@"
