#!/usr/bin/env bash
# Neural greedy pursuit: speed against numpy in the same run. Installs its own rivals. What it finds is in benches/papers.
#
#     benches/ngp.sh [speed]
#     benches/ngp.sh found artificial 300 20 1000 '{"eta": 0.05}'     what is false and missed with other options; `missed` with k known
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "${1:-speed}" != speed ] || set -- speed "$here/python" "$here/ngp_numpy.py"
exec cargo bench --quiet --manifest-path "$here/Cargo.toml" --bench ngp -- "$@"
