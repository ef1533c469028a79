#!/bin/sh
# Filters and penalties beside their peers, in one run: `benches/filters.sh data-folder`, which holds isolet_train.parquet and mnist_train.parquet; what is not there is left out by name.
# PURSUIT is the shell to ask, target/release/pursuit by default; PYTHON one that has scikit-learn 1.9.1, abess 0.4.11 and pyarrow. Our times include starting and reading the file, theirs do not.
# Printed are seconds of the clock, and of the processors, which a busy machine disturbs less: peers are held to one thread.
# Asked for: mutual_information and cmim at least 10 times mutual_info_classif, lasso at least twice lars_path, best_subset at least twice abess with a fit as good.
set -eu
data=${1:-benches/data}
export PURSUIT=${PURSUIT:-target/release/pursuit} OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ -f "$data/isolet_train.parquet" ]; then
    "$python" benches/filters.py mutual_info_classif "$data/isolet_train.parquet" label \
        "mutual_information('$data/isolet_train.parquet', label => label, task => 'classification', k => 50)" \
        "cmim('$data/isolet_train.parquet', label => label, task => 'classification', k => 50)"
else
    echo "isolet_train.parquet is not in $data: left out"
fi

"$PURSUIT" -q -c "COPY (SELECT * FROM sample_problem('linear', 20000, 1, '{\"columns\": 500, \"noise\": 5.0}')) TO '$folder/linear.parquet'" > "$folder/answer"
"$python" benches/filters.py lars_path "$folder/linear.parquet" label "lasso('$folder/linear.parquet', label => label, k => 500)"

if [ -f "$data/mnist_train.parquet" ]; then
    "$python" benches/filters.py abess "$data/mnist_train.parquet" label "best_subset('$data/mnist_train.parquet', label => label, task => 'regression', k => 50)"
else
    echo "mnist_train.parquet is not in $data: left out"
fi
