#!/usr/bin/env bash
# The league: selectors of ours and of others choose columns of the same tables, and the same two judges say what the choices are worth on rows
# that no selector has seen. Installs what it needs; needs `cargo build --release`, or PURSUIT names another build.
#
#     benches/quality.sh DATA [--tables california,adult+random] [--selectors omp,xgboost_gain] [--seeds 3] [--first 20] [--rows 10000] [--answers FILE] [--renew omp,boosting]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/python" -c 'import mrmr, xgboost' 2>/dev/null || "$here/python" -m pip install --quiet xgboost mrmr_selection
# Judges of small tables: two threads that wait for each other on a busy machine take longer than one.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
exec "$here/python" "$here/quality.py" "$@"
