"""Write the sample tables next to this file, as Parquet.

pip install numpy==2.4.6 pyarrow==26.0.1 scikit-learn==1.9.1
python make_samples.py
"""

import platform
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn
from sklearn import datasets

HERE = Path(__file__).resolve().parent


def column(values):
    """Smallest signed integer type if every value is whole, else float64."""
    if np.all(values == np.round(values)):
        for kind in (np.int8, np.int16, np.int32, np.int64):
            info = np.iinfo(kind)
            if info.min <= values.min() and values.max() <= info.max:
                return pa.array(values.astype(kind))
    return pa.array(values.astype(np.float64))


def snake(name):
    return name.replace(" (cm)", "").replace("/", "_").replace(" ", "_").lower()


def write(name, data, features, label):
    arrays = [column(data[:, j]) for j in range(data.shape[1])] + [label]
    # Not through pandas: its metadata would only add bytes to small files.
    table = pa.table(arrays, names=[*features, "label"])
    path = HERE / f"{name}.parquet"
    pq.write_table(table, path, compression="zstd", compression_level=19,
                   row_group_size=table.num_rows)
    print(f"{name}: {data.shape[0]} x {data.shape[1]}, label {label.type}, "
          f"{path.stat().st_size} bytes")


def classes(bunch):
    return pa.array([str(bunch.target_names[i]) for i in bunch.target], pa.string())


def main():
    print(f"python {platform.python_version()}, numpy {np.__version__}, "
          f"pyarrow {pa.__version__}, scikit-learn {sklearn.__version__}")

    # The scaled version hides the units, which are half the point of a sample.
    b = datasets.load_diabetes(scaled=False)
    # The label is a quantity: float64, so that nobody takes it for classes.
    write("diabetes", b.data, b.feature_names, pa.array(b.target.astype(np.float64)))

    for name in ("wine", "breast_cancer", "iris"):
        b = getattr(datasets, f"load_{name}")()
        write(name, b.data, [snake(f) for f in b.feature_names], classes(b))

    b = datasets.load_digits()
    write("digits", b.data, [f"pixel_{j:02}" for j in range(64)],
          pa.array(b.target.astype(np.int8)))


if __name__ == "__main__":
    main()
