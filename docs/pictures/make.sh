#!/bin/sh
# Makes the pictures of the documents. A test makes them again and compares.
set -eu
cd "$(dirname "$0")/../.."
draw() {
    file=$1 sql=$2
    shift 2
    cargo run -q -- plot -q -c "$sql" "$@" -o "docs/pictures/$file"
}

draw ranking.svg "SELECT * FROM omp('sample.diabetes', 'label', 8)"
draw curve.svg "SELECT * FROM omp(sample.diabetes, label => label, k => 10, folds => 5)" --kind curve
draw path.svg "SELECT * FROM selection_path(sample.diabetes, label => label, selector => 'lasso')"
draw correlation.svg "SELECT * FROM correlation_matrix(sample.diabetes)"
draw pixels.svg "SELECT * FROM omp('sample.digits', 'label', 20)" --image 8x8
