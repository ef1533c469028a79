#!/usr/bin/env bash
# A cluster on one machine beside the plain shell: benches/cluster.sh [rows] [folder]. Writes a table of 50 columns (200 bytes a row) into the folder, ranks its columns
# in the shell, on one executor and on three, and compares the answers; then counts the bytes between the processes for tables of 10 to 200 columns. Removes what it wrote.
# Takes server/target/release/pursuit, or the program that PURSUIT names, and a python with server/tests/requirements.txt, or the one that PYTHON names.
set -euo pipefail
cd "$(dirname "$0")/.."
rows=${1:-50000000}
folder=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/cluster.XXXXXX")
trap 'rm -rf "$folder"' EXIT
if [ "$rows" -gt 50000000 ] || [ "$(df --output=avail -B1 "$folder" | tail -1)" -lt $((rows * 210 + 3000000000)) ]; then
    echo "at most 50,000,000 rows, and $(((rows * 210 + 3000000000) / 1000000000)) GB of disk for them" >&2
    exit 1
fi
export PURSUIT=$(realpath "${PURSUIT:-server/target/release/pursuit}") PYTHONPATH=server/tests
# In a network of its own, where nobody else sends a byte.
unshare --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh "${PYTHON:-python3}" benches/cluster.py "$rows" "$folder"
