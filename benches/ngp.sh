#!/usr/bin/env bash
# Neural greedy pursuit: recovery, errors and speed, against numpy in the same run. Installs its own rivals.
#
#     benches/ngp.sh                       made-up problems and speed
#     benches/ngp.sh BOSTON.parquet MNIST_TRAIN.parquet MNIST_TEST.parquet     also those; the label is the last column
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$here/python
ngp() { cargo bench --quiet --manifest-path "$here/Cargo.toml" --bench ngp -- "$@"; }
flat() { "$python" - "$@" <<'PY'
import sys, numpy as np, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1]).slice(0, int(sys.argv[3]))
columns = [table.column(at).to_numpy().astype(float) for at in range(table.num_columns)]
np.concatenate([[table.num_rows, len(columns)], *columns]).tofile(sys.argv[2])
PY
}
ngp speed "$python" "$here/ngp_numpy.py"
ngp recovery
if [ $# -eq 3 ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    flat "$1" "$work/boston" 100000
    flat "$2" "$work/train" 1000
    flat "$3" "$work/test" 10000
    ngp boston "$work/boston"
    ngp mnist "$work/train" "$work/test"
    ngp cnn "$work/train" "$work/test"
    { for table in train:"$2" test:"$3"; do
          echo "CREATE EXTERNAL TABLE mnist_${table%%:*} STORED AS PARQUET LOCATION '$(realpath "${table#*:}")';"
      done
      cat "$here/ngp_mnist.sql"; } > "$work/mnist.sql"
    (cd "$here/.." && cargo run --quiet -- -q -f "$work/mnist.sql")
fi
