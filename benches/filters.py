"""What the peers of benches/filters.sh take: seconds of one call, the data in memory before.

python benches/filters.py peer data.parquet label
"""

import sys
import time

import numpy as np
import pyarrow.parquet as pq

peer, path, label = sys.argv[1:4]
frame = pq.read_table(path).to_pandas()
y = frame.pop(label)
x = np.ascontiguousarray(frame.to_numpy(float))
start = time.perf_counter()
if peer == "mutual_info_classif":
    from sklearn.feature_selection import mutual_info_classif

    start = time.perf_counter()
    mutual_info_classif(x, y.to_numpy())
    print(f"{time.perf_counter() - start:.3f}")
elif peer == "lars_path":
    from sklearn.linear_model import lars_path

    x = x - x.mean(axis=0)
    x /= np.linalg.norm(x, axis=0)
    y = y.to_numpy(float) - y.mean()
    start = time.perf_counter()
    lars_path(x, y, method="lasso")
    print(f"{time.perf_counter() - start:.3f}")
elif peer == "abess":
    import abess

    y = y.to_numpy(float)
    start = time.perf_counter()
    model = abess.LinearRegression(support_size=50).fit(x, y)
    seconds = time.perf_counter() - start
    left = y - model.predict(x)
    print(f"{seconds:.3f} {1 - float(left @ left) / float(((y - y.mean()) ** 2).sum()):.6f}")
