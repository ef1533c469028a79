#!/bin/sh
# Filters and penalties beside their peers, in one run: `benches/filters.sh data-folder`, which holds isolet_train.parquet and mnist_train.parquet; what is not there is left out by name.
# PURSUIT is the shell to ask, target/release/pursuit by default; PYTHON one that has scikit-learn 1.9.1, abess 0.4.11 and pyarrow. Our times include reading the file, theirs do not.
# Asked for: mutual_information and cmim at least 10 times mutual_info_classif, lasso at least twice lars_path, best_subset at least twice abess with a fit as good.
set -eu
data=${1:-benches/data}
shell=${PURSUIT:-target/release/pursuit}
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The median of three runs, in seconds.
seconds() {
    for run in 1 2 3; do
        start=$(date +%s.%N)
        "$shell" -q -c "SELECT max(train_score) FROM $1" > "$folder/answer"
        end=$(date +%s.%N)
        echo "$end $start" | awk '{ printf "%.3f\n", $1 - $2 }'
    done | sort -n | sed -n 2p
}
compare() { echo "$1 $2 $3" | awk '{ printf "%-36s %8.3f s, peer %8.3f s, ratio %.1f\n", $1, $2, $3, $3 / $2 }'; }

if [ -f "$data/isolet_train.parquet" ]; then
    peer=$("$python" benches/filters.py mutual_info_classif "$data/isolet_train.parquet" label)
    compare mutual_information "$(seconds "mutual_information('$data/isolet_train.parquet', label => label, task => 'classification', k => 50)")" "$peer"
    compare cmim "$(seconds "cmim('$data/isolet_train.parquet', label => label, task => 'classification', k => 50)")" "$peer"
else
    echo "isolet_train.parquet is not in $data: left out"
fi

"$shell" -q -c "COPY (SELECT * FROM sample_problem('linear', 20000, 1, '{\"columns\": 500, \"noise\": 5.0}')) TO '$folder/linear.parquet'" > "$folder/answer"
compare lasso "$(seconds "lasso('$folder/linear.parquet', label => label, k => 500)")" "$("$python" benches/filters.py lars_path "$folder/linear.parquet" label)"

if [ -f "$data/mnist_train.parquet" ]; then
    set -- $("$python" benches/filters.py abess "$data/mnist_train.parquet" label)
    compare best_subset "$(seconds "best_subset('$data/mnist_train.parquet', label => label, task => 'regression', k => 50)")" "$1"
    echo "R² of best_subset:" && cat "$folder/answer" && echo "of abess: $2"
else
    echo "mnist_train.parquet is not in $data: left out"
fi
