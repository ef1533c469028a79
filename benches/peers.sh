#!/usr/bin/env bash
# Whole queries against what a person would write today, in one run. Installs its own rivals.
#
#     benches/peers.sh                          a generated table of 5,000,000 x 50
#     benches/peers.sh FILE.parquet LABEL K     a file of yours, label as a number
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/python" "$here/peers.py" "$@"
