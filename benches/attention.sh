#!/usr/bin/env bash
# Neural sequential attention: speed against a compiled framework, and one pass over a large table. Its accuracy is in benches/papers.
# Installs its own rivals; needs `cargo build --release`.
#
#     benches/attention.sh speed DIRECTORY       the same steps in JAX and here, in turn; share of the machine's peak
#     benches/attention.sh one_pass              a generated table of 5,000,000 x 40
#
# DIRECTORY holds {mnist,isolet}_train.parquet: numbers, and a column `label`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/python" "$here/attention.py" "$@"
