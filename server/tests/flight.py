"""Flight SQL as ADBC sees it. `server/test.sh` runs it."""
import os, subprocess, tempfile, threading, time

import adbc_driver_flightsql.dbapi as flight
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import Error

from harness import LONG, run, server, until

OMP = "SELECT rank, feature, score FROM omp('sample.diabetes', 'label', 3) ORDER BY rank"


def connect(one, user="ada", password="lovelace", **options):
    keys = {"username": user, "password": password} if user else {}
    scheme = "grpc+tls" if options else "grpc"
    return flight.connect(f"{scheme}://127.0.0.1:{one.ports['flight']}", db_kwargs={**keys, **options}, autocommit=True)


def adbc_asks_and_gets_arrow():
    with server("--flight", "127.0.0.1:0") as one, connect(one) as c, c.cursor() as cursor:
        cursor.execute(OMP)
        table = cursor.fetch_arrow_table()
        assert table.column("feature").to_pylist() == ["bmi", "s5", "bp"], table
        rows = {tuple(row) for row in zip(*(table.column(name).to_pylist() for name in ["rank", "feature", "score"]))}
        # The same rows to the last digit as over the other protocol.
        out = one.psql("-At", "-c", "SET extra_float_digits = 3; " + OMP)[1]
        assert {(int(r), f, float(s)) for r, f, s in (line.split("|") for line in out.splitlines() if "|" in line)} == rows, out
        cursor.execute("SELECT feature FROM omp((SELECT * FROM sample.diabetes WHERE age > $1), label => label, k => 1)", (40.5,))
        assert cursor.fetchone() == ("bmi",)
        cursor.execute("SELECT label, count(*) AS n FROM sample.iris GROUP BY label")
        assert sum(n for _, n in cursor.fetchall()) == 150
        cursor.execute("SELECT 1 AS a WHERE false")
        assert cursor.fetchall() == []


def adbc_sees_tables():
    with server("--flight", "127.0.0.1:0") as one, connect(one) as c:
        assert "iris" in str(c.adbc_get_objects(depth="tables").read_all().to_pylist())
        columns = str(c.adbc_get_objects(table_name_filter="iris", depth="columns").read_all().to_pylist())
        assert "petal" in columns, columns
        assert "TABLE" in c.adbc_get_table_types()
        assert c.adbc_get_info()["vendor_name"] == "Pursuit"


def mistakes_and_limits_are_the_same():
    with server("--flight", "127.0.0.1:0") as one, connect(one) as c, c.cursor() as cursor:
        for sql, part in [("SELECT * FROM nowhere", "nowhere"), ("SELEC 1", "SELEC"), ("CREATE TABLE t AS SELECT 1 AS a", "read-only"),
                          ("COPY (SELECT 1) TO '/tmp/x.csv'", "COPY"), ("SELECT * FROM omp('sample.diabetes', 'label', 0)", "`k`"),
                          ("SET datafusion.runtime.memory_limit = '1G'", "not allowed"), ("SELECT * FROM '/etc/passwd'", "passwd")]:
            try:
                cursor.execute(sql)
                cursor.fetchall()
                raise AssertionError(f"{sql} was answered")
            except Error as error:
                assert part in str(error), (sql, error)
        cursor.execute("SELECT 1 AS a")
        assert cursor.fetchone() == (1,)
    for user, password in [("ada", "wrong"), ("nobody", "x"), (None, None)]:
        with server("--flight", "127.0.0.1:0") as one:
            try:
                with connect(one, user, password) as c, c.cursor() as cursor:
                    cursor.execute("SELECT 1")
                raise AssertionError("a stranger was let in")
            except Error as error:
                assert "nauthenticated" in str(error).replace("UNAUTHENTICATED", "nauthenticated"), error


def cancel_stops_the_selection():
    with server("--flight", "127.0.0.1:0") as one, connect(one) as c, c.cursor() as cursor:
        errors = []

        def ask():
            try:
                cursor.execute(LONG)
                cursor.fetchall()
            except Error as error:
                errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: one.running() == 1, 10, "the selection runs")
        time.sleep(0.3)
        begun = time.monotonic()
        cursor.adbc_cancel()
        until(lambda: one.running() == 0, 0.5, "the selection ends")
        thread.join(5)
        assert errors and time.monotonic() - begun < 0.5, errors


def tables_are_made():
    with server("--flight", "127.0.0.1:0", "--writable") as one, connect(one) as c, c.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT 1 AS a")
        cursor.fetchall()
        cursor.executescript("INSERT INTO t VALUES (2)")
        cursor.execute("SELECT sum(a) FROM t")
        assert cursor.fetchone() == (3,)


def tls_is_used():
    with tempfile.TemporaryDirectory() as folder:
        key, crt = os.path.join(folder, "key"), os.path.join(folder, "crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", crt], check=True, capture_output=True)
        with server("--flight", "127.0.0.1:0", "--tls-cert", crt, "--tls-key", key) as one:
            with connect(one, **{DatabaseOptions.TLS_ROOT_CERTS.value: open(crt).read()}) as c, c.cursor() as cursor:
                cursor.execute("SELECT 1 AS a")
                assert cursor.fetchone() == (1,)
            try:
                with connect(one) as c, c.cursor() as cursor:
                    cursor.execute("SELECT 1")
                raise AssertionError("plain text was answered")
            except Error:
                pass


run([adbc_asks_and_gets_arrow, adbc_sees_tables, mistakes_and_limits_are_the_same, cancel_stops_the_selection, tables_are_made, tls_is_used])
