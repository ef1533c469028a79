"""The SQL that model_sql writes gives the numbers of predict in DuckDB, and in PostgreSQL where it is installed.

python tests/model_sql.py [path to the shell]     needs: pip install duckdb

Fits every kind of model that has SQL on a table with NULLs, odd names and odd texts; predicts rows with NULLs, levels that were not seen, NaN and infinity;
and compares what the databases make of the expression, to 1e-12 of the number.
"""

import csv
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
SHELL = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target" / "debug" / "pursuit")
COLUMNS = {"id": "BIGINT", 'odd "name"': "TEXT", "x": "DOUBLE PRECISION", "n": "BIGINT", "y": "DOUBLE PRECISION", "two": "TEXT", "three": "BIGINT"}


def rows(count, seed, is_new):
    draw = random.Random(seed)
    for at in range(count):
        text = draw.choice(["it's", 'a "b"', "plain", "back\\slash", None] + (["new", ""] if is_new else []))
        x = draw.choice([None, draw.gauss(1e6, 1e3), draw.gauss(0, 1e-3), draw.gauss(50, 9)])
        if is_new and at % 17 == 0:
            x = draw.choice([math.nan, math.inf, -math.inf, 1e200, -1e200])
        n = draw.choice([None, draw.randrange(-5, 40)])
        known = 0.0 if x is None or not abs(x) <= 1e100 else math.copysign(math.log1p(abs(x)), x)
        score = known - 0.1 * (n or 3) + (len(text) if text else 4) + draw.gauss(0, 1)
        yield [at, text, x, n, score, "high" if score > 8 else "low", 0 if score < 5 else 1 if score < 10 else 2]


def shell(*statements):
    out = subprocess.run([SHELL, "-q", "--format", "json", *[arg for s in statements for arg in ("-c", s)]], capture_output=True, text=True)
    if out.returncode or out.stderr:
        sys.exit(f"{statements}\n{out.stderr}")
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("[")]


def close(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(float(a) - float(b)) <= 1e-12 * max(1.0, abs(float(a)))
    return str(a).lower() == str(b).lower()


def compare(database, model, expected, found):
    assert len(expected) == len(found), (database, model, len(expected), len(found))
    bits = 0
    for want, got in zip(expected, found):
        assert all(close(a, b) for a, b in zip(want, got)), f"{database}, {model}: {got} instead of {want}"
        bits += want[0] == got[0]
    print(f"{database}: {model}: {len(found)} rows agree, {bits} predictions to the last bit")


class Postgres:
    """A server of its own in a folder that goes away."""

    def __init__(self, folder):
        tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self.bin = tools[-1]
        self.data = folder / "pg"
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        self.data.mkdir()
        if self.user:
            shutil.chown(folder, "postgres")
            shutil.chown(self.data, "postgres")
            folder.chmod(0o755)
        self.run(self.bin / "initdb", "-D", self.data, "-A", "trust", "-U", "pursuit")
        options = f"-k {self.data} -c listen_addresses= -c fsync=off"
        self.run(self.bin / "pg_ctl", "-D", self.data, "-w", "-o", options, "-l", self.data / "log", "start")

    def run(self, *command):
        subprocess.run([*self.user, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd="/")

    def query(self, sql):
        psql = [*self.user, str(self.bin / "psql"), "-h", str(self.data), "-U", "pursuit", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "--csv", "-t"]
        out = subprocess.run(psql, input=sql, capture_output=True, text=True, cwd="/")
        if out.returncode:
            sys.exit(out.stderr)
        return list(csv.reader(out.stdout.splitlines()))

    def stop(self):
        self.run(self.bin / "pg_ctl", "-D", self.data, "-m", "immediate", "stop")


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def main():
    folder = Path(tempfile.mkdtemp(prefix="model_sql"))
    duck = duckdb.connect()
    files = {}
    for name, count, seed, is_new in [("train", 600, 1, False), ("test", 400, 2, True)]:
        definition = ", ".join('"{}" {}'.format(column.replace('"', '""'), kind) for column, kind in COLUMNS.items())
        duck.execute(f"CREATE TABLE {name} ({definition})")
        duck.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(COLUMNS))})", list(rows(count, seed, is_new)))
        files[name] = folder / f"{name}.parquet"
        duck.execute(f"COPY {name} TO '{files[name]}' (FORMAT parquet)")
    postgres = Postgres(folder) if list(Path("/usr/lib/postgresql").glob("*/bin")) else None
    if postgres:
        path = folder / "test.csv"
        duck.execute(f"COPY test TO '{path}' (FORMAT csv, HEADER false, NULL '\\N')")
        path.chmod(0o644)
        definition = ", ".join('"{}" {}'.format(column.replace('"', '""'), kind) for column, kind in COLUMNS.items())
        postgres.query(f"CREATE TABLE test ({definition});\n\\copy test from '{path}' with (format csv, null '\\N')")
    try:
        for label, model in [("y", "linear"), ("two", "logistic"), ("three", "logistic"), ("y", "boosting"), ("two", "boosting"), ("three", "boosting")]:
            fit = f"fit('{files['train']}', label => {label}, model => '{model}', features => ['odd \"name\"', 'x', 'n'])"
            stored = f"CREATE TABLE m AS SELECT * FROM {fit}"
            written, predicted = shell(
                stored,
                "SELECT sql, classes, probabilities FROM model_sql(m)",
                f"SELECT prediction, probabilities FROM predict('{files['test']}', model => m) ORDER BY id",
            )
            sql, classes, shares = written[0]["sql"], written[0]["classes"], written[0]["probabilities"]
            expected = [[row["prediction"], *[row["probabilities"][name] for name in classes]] for row in predicted]
            query = f"SELECT {', '.join([sql, *shares])} FROM test ORDER BY id"
            compare("duckdb", f"{model} of {label}", expected, duck.execute(query).fetchall())
            if postgres:
                found = [[number(cell) for cell in row] for row in postgres.query(query)]
                compare("postgresql", f"{model} of {label}", expected, found)
    finally:
        if postgres:
            postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


main()
