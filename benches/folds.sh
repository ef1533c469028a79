#!/bin/sh
# What folds and resamples cost beside one selection, in one run: `benches/folds.sh [rows] [columns]`, 5,000,000 and 50 by default.
# PURSUIT is the shell to ask, target/release/pursuit by default. Asked for: at most 1.5 with five folds, at most 3 with a hundred halves, and one reading of the file for a comparison of all selectors that read moments.
set -eu
rows=${1:-5000000}
columns=${2:-50}
shell=${PURSUIT:-target/release/pursuit}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
table="$folder/long.parquet"

"$shell" -q -c "COPY (SELECT * FROM sample_problem('linear', $rows, 1, '{\"columns\": $columns, \"noise\": 5.0}')) TO '$table'" > /dev/null

# The median of five runs, in seconds, of a query that reads the file.
seconds() {
    for run in 1 2 3 4 5; do
        start=$(date +%s.%N)
        "$shell" -q -c "SELECT count(*) FROM $1" > /dev/null
        end=$(date +%s.%N)
        echo "$end $start" | awk '{ printf "%.3f\n", $1 - $2 }'
    done | sort -n | sed -n 3p
}

one=$(seconds "omp('$table', label => label, k => 10)")
folds=$(seconds "omp('$table', label => label, k => 10, folds => 5)")
one_se=$(seconds "omp('$table', label => label, k => 'one_se', folds => 5)")
halves=$(seconds "stability_selection('$table', label => label, k => 10, resamples => 100)")
compare=$(seconds "compare_selectors('$table', label => label, k => 10)")
sample=$(seconds "omp('$table', label => label, k => 10, sample_rows => 100000)")
# How often the file is read for it: scans in the plan, and the rows that came out of them.
plan=$("$shell" -q --format csv -c "EXPLAIN ANALYZE SELECT count(*) FROM compare_selectors('$table', label => label, k => 10)")
scans=$(echo "$plan" | grep -c "DataSourceExec")
read=$(echo "$plan" | grep -o "rows_read=[0-9.]* *[KMB]*" | head -1)
ratio() { echo "$1 $one" | awk '{ printf "%.2f", $1 / $2 }'; }
echo "$rows rows, $columns columns"
echo "omp, k => 10                        $one s"
echo "omp, k => 10, folds => 5            $folds s   $(ratio "$folds") x"
echo "omp, k => 'one_se', folds => 5      $one_se s   $(ratio "$one_se") x"
echo "stability_selection, 100 halves     $halves s   $(ratio "$halves") x"
echo "compare_selectors, all of moments   $compare s   $(ratio "$compare") x   scans: $scans, $read"
echo "omp, k => 10, sample_rows => 100000 $sample s   $(ratio "$sample") x"
