#!/usr/bin/env bash
# What the three papers print, published beside measured: writes docs/papers.md and docs/pictures/papers/. Installs what it needs.
#
#     benches/papers/run.sh [DATA] [--quick] [--only table2,fig3] [--seeds 5] [--large-seeds 5] [--splits 30] [--runs 100] [--rows 500000] [--sets mnist,isolet] [--out DIRECTORY]
#
# DATA holds the sets as Parquet files, the label last; a set that is not there is skipped by name.
# --quick runs every part once, in minutes, on the sample tables, to see that all of it works, and writes into benches/data instead of docs; --list names the parts.
# Answers are kept in benches/data/papers/full.jsonl, so that an interrupted run goes on where it was; --fresh asks again.
# PURSUIT names the shell, by default target/release/pursuit or else target/debug/pursuit.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python" "$here/run.py" "$@"
