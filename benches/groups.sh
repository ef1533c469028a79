#!/bin/sh
# partition_by at scale: omp for each of many groups, against summing the same columns by group, in the same process.
#   benches/groups.sh [rows] [groups]
# Takes target/release/pursuit, or the program that PURSUIT names. Prints the best of three of each, and their ratio.
set -eu
cd "$(dirname "$0")/.."
rows=${1:-1000000}
groups=${2:-10000}
pursuit=${PURSUIT:-target/release/pursuit}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
columns=$(seq 1 20 | sed 's/.*/random() AS x&/' | paste -sd, -)
sums=$(seq 1 20 | sed 's/.*/sum(x&) AS s&/' | paste -sd, -)
all=$(seq 1 20 | sed 's/.*/s&/' | paste -sd+ -)
file="$folder/groups.parquet"
"$pursuit" -q -c "COPY (SELECT *, x3 + 2 * x7 - x11 + random() AS label FROM
  (SELECT value % $groups AS part, $columns FROM generate_series(1, $rows))) TO '$file'" > /dev/null
# What is not used would not be computed.
sum="SELECT sum($all) FROM (SELECT part, $sums FROM t GROUP BY part);"
omp="SELECT sum(rank), sum(score) FROM omp(t, label => label, k => 10, partition_by => part);"
# In memory, and each query once before the clock counts.
clock="SELECT 'clock' AS name, CAST(now() AS BIGINT) AS at;"
{
    echo "CREATE TABLE t AS SELECT * FROM '$file';"
    for _ in 1 2 3 4; do echo "$clock $sum $clock $omp"; done
    echo "$clock"
} > "$folder/queries.sql"
"$pursuit" -q --format csv -f "$folder/queries.sql" | awk -F, '
    /^clock/ { at[++n] = $2 }
    END {
        for (i = 3; i < n; i++) {
            seconds = (at[i + 1] - at[i]) / 1e9
            if (!((i % 2) in best) || seconds < best[i % 2]) best[i % 2] = seconds
        }
        printf "sum by group %.3f s, omp by group %.3f s, ratio %.1f\n", best[1], best[0], best[0] / best[1]
    }'
