"""Writes a click-like table: 40 features, of which 15 decide, some only together, about 4 clicks in 100 rows.

    clicks.py ROWS FILE
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 100_000


def chunk(rng, rows):
    x = rng.standard_normal((rows, 40))
    x[:, 10:20] = np.floor(np.exp(x[:, 10:20]))          # counts with a long tail
    x[:, 20:25] = (x[:, 20:25] > 1.0)                    # flags
    s = lambda j: np.log1p(x[:, j]) - 0.7 if 10 <= j < 20 else x[:, j]
    score = sum(0.5 * s(j) for j in (0, 1, 2, 3, 10, 11, 12)) + sum(0.9 * x[:, j] for j in (20, 21))
    score = score + 0.5 * s(4) * s(5) + 0.5 * np.maximum(s(6), s(7)) + 0.9 * (s(8) > 0.5) + 0.6 * np.tanh(2 * s(30))
    click = rng.random(rows) < 1 / (1 + np.exp(-(score - 4.5)))
    return x, click


def main(rows, path):
    rng = np.random.default_rng(0)
    names = [f"f{j}" for j in range(40)]
    schema = pa.schema([("click", pa.bool_())] + [(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            x, click = chunk(rng, min(CHUNK, rows - start))
            columns = [pa.array(click)] + [pa.array(x[:, j]) for j in range(40)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=CHUNK)


main(int(sys.argv[1]), sys.argv[2])
