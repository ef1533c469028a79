#!/bin/sh
# How much memory queries really take under a limit: the most that the process had, less what it has for SELECT 1.
#   benches/memory.sh [megabytes ...]
# Takes target/release/pursuit, or the program that PURSUIT names. Asked for: at most 1.1 of the limit, whether a query ends with an answer or says that the limit
# is too low. A query whose peak is above that is marked.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 200 300
pursuit=${PURSUIT:-target/release/pursuit}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# In small row groups, because a reader has one of them in memory, whatever the limit; but not too small, because it has 1.4 KB for each column of each of them, too.
table() { # name rows columns rows_of_a_group
    "$pursuit" -q -c "COPY (SELECT * FROM sample_problem('linear', $2, 1, '{\"columns\": $3, \"noise\": 1.0}')) TO '$folder/$1.parquet' OPTIONS ('format.max_row_group_size' $4)" > /dev/null
}
table rows 300000 10 20000
table wide 4000 3000 500
table long 600000 40 20000

# Megabytes at most, and the last line that it wrote.
peak() { # limit query
    /usr/bin/env python3 - "$pursuit" "$1" "$2" <<'PYTHON'
import resource, subprocess, sys
program, limit, query = sys.argv[1:]
options = ["--memory-limit", limit + "MB"] if limit != "0" else []
done = subprocess.run([program, "-q", *options, "--format", "csv", "-c", query], capture_output=True, text=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
said = "answered" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word"])[-1][:100]
print(most, said)
PYTHON
}

base=$(peak 0 "SELECT 1" | cut -d' ' -f1)
echo "SELECT 1: $base MB"
for limit in "$@"; do
    for query in \
        "ngp('$folder/rows.parquet', label => label, k => 3)" \
        "ngp('$folder/rows.parquet', label => label, k => 3, neurons => 400)" \
        "random_forest('$folder/rows.parquet', label => label, k => 3)" \
        "boosting('$folder/long.parquet', label => label, k => 3)" \
        "sa('$folder/wide.parquet', label => label, k => 10)" \
        "sa('$folder/long.parquet', label => label, k => 10, passes => 'one')" \
        "evaluate('$folder/rows.parquet', label => label, seeds => 4, epochs => 2)" \
        "select_features('$folder/rows.parquet', label => label, k => 3, time_limit => 10)" \
        "compare_selectors('$folder/long.parquet', label => label, k => 5)" \
        "stability_selection('$folder/long.parquet', label => label, k => 5)" \
        "describe_features('$folder/long.parquet', label => label)" \
        "fit('$folder/long.parquet', label => label, model => 'boosting', rounds => 20)" \
        "relief('$folder/rows.parquet', label => label, k => 3)" \
        "gam('$folder/rows.parquet', label => label, k => 3)" \
        "deep_lasso('$folder/rows.parquet', label => label, k => 3, epochs => 1)" \
        "boruta('$folder/rows.parquet', label => label)"
    do
        set -- $(peak "$limit" "SELECT count(*) FROM $query")
        most=$1
        shift
        echo "$limit $base $most $query" | sed "s|$folder/||; s|\.parquet||" | awk -v said="$*" '{
            over = $3 - $2; limit = $1; $1 = $2 = $3 = ""
            printf "limit %d MB, peak %4d MB %s%s: %s\n", limit, over, (over > 1.1 * limit ? "(above) " : ""), $0, said
        }'
    done
done
