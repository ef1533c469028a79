"""The server as clients see it: psql, psycopg, and a socket that does not keep to the rules. `server/test.sh` runs it."""
import base64, hashlib, hmac, os, signal, socket, struct, subprocess, tempfile, threading, time

import psycopg

from harness import LONG, PURSUIT, Server, cpu, run, server, until

OMP = "SELECT rank, feature, score FROM omp('sample.diabetes', 'label', 3) ORDER BY rank"


def code(connection, sql, parameters=None):
    """The SQLSTATE that a statement ends with, and what is said."""
    try:
        connection.execute(sql, parameters).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary or str(error)
    return "00000", ""


def connect(one, **options):
    return psycopg.connect(one.url(**options), autocommit=True)


def psql_answers_as_the_shell_does():
    shell = subprocess.run([PURSUIT, "-q", "--format", "csv", "-c", OMP], capture_output=True, text=True, timeout=120, check=True)
    with server() as one:
        for sql in [OMP, OMP.replace("'sample.diabetes', 'label', 3", "sample.diabetes, label => label, k => 3")]:
            status, out, error = one.psql("--csv", "-c", sql)
            assert (status, out) == (0, shell.stdout), (out, shell.stdout, error)
        # What PostgreSQL's dialect has no words for, and the ways that it does have words for.
        for sql in ["SELECT feature FROM omp((SELECT * EXCLUDE (sex) FROM sample.diabetes), label => label, k => 1)",
                    "SELECT feature FROM omp('sample.diabetes', 'label', 1, MAP {'exclude': 'sex'})",
                    "SELECT feature FROM omp('sample.diabetes', 'label', 1, '{\"exclude\": [\"sex\"]}')",
                    "SELECT feature FROM omp(sample.diabetes, label => label, k => 1, exclude => ARRAY['sex'])"]:
            status, out, error = one.psql("-At", "-c", sql)
            assert (status, out) == (0, "bmi\n"), (sql, out, error)
        status, out, error = one.psql("-At", "-c", "SELECT 1; SELECT 2")
        assert (status, out) == (0, "1\n2\n"), (out, error)


def psql_shows_what_there_is():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "patients.csv"), "w") as file:
            file.write("age,weight,outcome\n" + "".join(f"{20 + i % 60},{50 + i % 40},{i % 7}\n" for i in range(200)))
        with server("--data", folder) as one:
            assert "patients" in one.psql("-c", "\\d")[1]
            status, out, error = one.psql("-c", "\\d patients")
            assert status == 0 and "outcome" in out, (out, error)
            assert "patients" in one.psql("-c", "\\dt")[1]
            status, out, error = one.psql("-At", "-c", "\\df")
            assert "public|omp|SETOF record|t, label => y, k => 5|func" in out.splitlines(), (out, error)
            functions = one.psql("-At", "-c", "SELECT function FROM functions() ORDER BY 1")[1].splitlines()
            assert [line.split("|")[1] for line in out.splitlines()] == functions and "pg_get_keywords" not in out, out
            assert one.psql("-At", "-c", "\\df pg_get_keywords")[1].startswith("pg_catalog|pg_get_keywords|"), "PostgreSQL's own are there"
            assert "diabetes" in one.psql("-c", "\\dt+ sample.*")[1]
            status, out, error = one.psql("-At", "-c", "\\df+ omp")
            assert status == 0 and out.startswith("public|omp|SETOF record|") and "|Orthogonal matching pursuit" in out, (out, error)
            status, out, error = one.psql("-At", "-c", "SELECT selector FROM selectors() WHERE selector = 'omp'")
            assert out == "omp\n", error
            status, out, error = one.psql("-At", "-c", "SELECT count(*) FROM omp(patients, label => outcome, k => 2)")
            assert out == "2\n", error


def mistakes_have_codes():
    with server("--statement-timeout", "2") as one, connect(one) as c:
        cases = [
            ("SELEC 1", "42601", "SELEC"),
            ("SELECT * FROM nowhere", "42P01", "nowhere"),
            ("SELECT * FROM omp(nowhere, label => y)", "42P01", "sample.diabetes"),
            ("SELECT nothing FROM sample.iris", "42703", "nothing"),
            ("SELECT nofunction(1)", "42883", "nofunction"),
            ("SELECT * FROM omp('sample.diabetes', 'label', 0)", "22023", "`k`"),
            ("SELECT * FROM omp('sample.diabetes', 'label', 3, '{\"sed\": 1}')", "22023", "seed"),
            ("SELECT 1 / 0", "22012", ""),
            ("CREATE TABLE t AS SELECT 1 AS a", "25006", "read-only"),
            ("COPY (SELECT 1) TO '/tmp/x.csv'", "0A000", "COPY"),
            ("SELECT * FROM '/etc/passwd'", "42P01", ""),
            ("SELECT * FROM \"/etc/passwd\"", "42P01", ""),
            ("SELECT * FROM omp('/etc/passwd', 'a', 1)", "42P01", "no table or view named"),
            ("SELECT * FROM omp('/etc/paswd', 'a', 1)", "42P01", "no table or view named"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "25006", ""),
            ("SET datafusion.runtime.memory_limit = '100G'", "42501", ""),
            ("SET \"DataFusion\".runtime.memory_limit = '100G'", "42501", ""),
            (LONG, "57014", "timeout"),
        ]
        for sql, expected, part in cases:
            sqlstate, message = code(c, sql)
            assert sqlstate == expected and part in message, (sql, sqlstate, message)
            assert "pg_catalog" not in message and "\n" not in message, message
            # Prepared statements end in the same way.
            if expected != "57014":
                sqlstate, message = code(c, sql, ())
                assert sqlstate == expected, (sql, sqlstate, message)
        assert code(c, "SELECT 1")[0] == "00000"
        assert c.execute(OMP).fetchone()[1] == "bmi"


def parameters_are_values():
    with server() as one, connect(one) as c:
        feature = c.execute("SELECT feature FROM omp((SELECT * FROM sample.diabetes WHERE age > %s), label => label, k => 1)", (40.5,)).fetchone()
        assert feature == ("bmi",), feature
        assert c.execute("SELECT count(*) FROM sample.diabetes WHERE age > %s", (1000,)).fetchone() == (0,)
        assert c.execute("SELECT %s::text", ("ü",)).fetchone() == ("ü",)
        assert c.execute("SELECT count(*) FROM sample.iris WHERE label = %s", ("setosa",)).fetchone()[0] >= 0
        sqlstate, message = code(c, "SELECT * FROM omp('sample.diabetes', %s, 1)", ("label",))
        assert sqlstate == "22023" and "argument" in message, (sqlstate, message)
        with c.transaction(), c.cursor(name="some") as cursor:
            cursor.execute(OMP)
            assert cursor.fetchone()[1] == "bmi" and len(cursor.fetchall()) == 2
        for binary in [False, True]:
            row = c.cursor(binary=binary).execute("SELECT rank, feature, score FROM omp('sample.diabetes', 'label', 1)").fetchone()
            assert row[1] == "bmi" and 0.58 < row[2] < 0.59, row


def cancel_is_quick():
    with server() as one, connect(one) as c:
        for sql in [LONG, "SELECT count(*) FROM generate_series(1, 100000000000)"]:
            times = []
            timer = threading.Timer(1.0, lambda: (times.append(time.monotonic()), c.cancel()))
            timer.start()
            sqlstate, message = code(c, sql)
            took = time.monotonic() - times[0]
            assert sqlstate == "57014" and "user request" in message, (sqlstate, message)
            assert took < 0.1, f"cancelling took {took:.3f} s"
            assert c.execute("SELECT 1").fetchone() == (1,)
            until(lambda: one.running() == 0, 1, "nothing runs after a cancel")
        # Ctrl-C in psql.
        psql = subprocess.Popen(["psql", "-X", "-c", LONG, one.url()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until(lambda: one.running() == 1, 10, "the selection runs")
        time.sleep(0.3)
        psql.send_signal(signal.SIGINT)
        took = until(lambda: one.running() == 0, 2, "Ctrl-C ends the selection")
        assert took < 0.15 and "user request" in psql.communicate(timeout=10)[1], took
        # A key that is not the client's cancels nothing.
        timer = threading.Timer(0.5, lambda: cancel(one.ports["postgres"], c.pgconn.backend_pid, 1))
        timer.start()
        c.execute("SET statement_timeout = '1500ms'")
        sqlstate, message = code(c, LONG)
        assert "timeout" in message, message


def cancel(port, pid, key):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(struct.pack("!iiii", 16, 80877102, pid, key))


def who_goes_away_stops_the_selection():
    with server() as one:
        for way in [signal.SIGKILL, signal.SIGTERM]:
            psql = subprocess.Popen(["psql", "-X", "-c", LONG, one.url()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: one.running() == 1, 10, "the selection runs")
            time.sleep(0.3)
            psql.send_signal(way)
            psql.wait()
            took = until(lambda: one.running() == 0, 1, "the selection ends with its client")
            until(lambda: one.metric("connections") == 0, 1, "the connection is closed")
            before = cpu(one.process)
            time.sleep(0.5)
            assert cpu(one.process) - before < 0.2, "the selection goes on in secret"


def passwords_are_asked_for():
    verifier = scram("secret")
    with server(users=f"# team\nada:lovelace\ncleo:{verifier}\nümi:pässword\n") as one:
        assert connect(one).execute("SELECT 1").fetchone() == (1,)
        assert connect(one, user="cleo", password="secret").execute("SELECT 1").fetchone() == (1,)
        assert connect(one, user="ümi", password="pässword").execute("SELECT 1").fetchone() == (1,)
        for user, password in [("ada", "sesame"), ("nobody", "lovelace"), ("cleo", verifier), ("ada", "")]:
            status, out, error = one.psql("-c", "SELECT 1", user=user, password=password or "''")
            assert status == 2 and ("authentication failed" in error or "no password" in error), error
        assert one.metric("logins_failed_total") >= 3
        assert "lovelace" not in one.logged() and "sesame" not in one.logged()
    with tempfile.NamedTemporaryFile("w") as users:
        users.write("ada:lovelace\n")
        users.flush()
        os.chmod(users.name, 0o644)
        assert "chmod 600" in refused("--users", users.name)
        os.chmod(users.name, 0o600)
        assert "--trust" in refused("--postgres", "0.0.0.0:0", "--trust")
        assert "plain text" in refused("--flight", "0.0.0.0:0", "--users", users.name)
    assert "--users" in refused()


def scram(password, salt=b"0123456789abcdef", iterations=4096):
    """A verifier as PostgreSQL writes it."""
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    sign = lambda text: hmac.new(key, text, hashlib.sha256).digest()
    encode = lambda data: base64.b64encode(data).decode()
    stored = hashlib.sha256(sign(b"Client Key")).digest()
    return f"SCRAM-SHA-256${iterations}:{encode(salt)}${encode(stored)}:{encode(sign(b'Server Key'))}"


def refused(*arguments):
    """What a server that does not start says."""
    done = subprocess.run([PURSUIT, "serve", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0, done
    return done.stderr


def nobody_gets_in_by_going_on():
    """Statements after a login that failed, or before any, are not run."""
    with server("--writable") as one:
        for login in [False, True]:
            s = socket.create_connection(("127.0.0.1", one.ports["postgres"]))
            startup = b"user\0ada\0database\0datafusion\0\0"
            s.sendall(struct.pack("!ii", 8 + len(startup), 196608) + startup)
            assert s.recv(1) == b"R"
            if login:
                body = b"SCRAM-SHA-256\0" + struct.pack("!i", 3) + b"bad"
                s.sendall(b"p" + struct.pack("!i", 4 + len(body)) + body)
                time.sleep(0.05)
            body = b"CREATE TABLE break_in AS SELECT 1 AS a\0"
            try:
                for _ in range(3):
                    s.sendall(b"Q" + struct.pack("!i", 4 + len(body)) + body)
                    time.sleep(0.1)
            except OSError:
                pass
            s.close()
        with connect(one) as c:
            assert code(c, "SELECT * FROM break_in")[0] == "42P01"


def tls_or_nothing():
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        for name in ["one", "two"]:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                            "-subj", "/CN=127.0.0.1", "-keyout", path(name + ".key"), "-out", path(name + ".crt")], check=True, capture_output=True)
        with server("--tls-cert", path("one.crt"), "--tls-key", path("one.key")) as one:
            status, out, error = one.psql("-At", "-c", "SELECT 1", sslmode="disable")
            assert status == 2 and "TLS" in error, error
            status, out, error = one.psql("-At", "-c", OMP, sslmode="require")
            assert status == 0 and "bmi" in out, error
            status, out, error = one.psql("-At", "-c", "SELECT 1", sslmode="verify-ca", sslrootcert=path("one.crt"))
            assert status == 0, error
            status, out, error = one.psql("-At", "-c", "SELECT 1", sslmode="verify-ca", sslrootcert=path("two.crt"))
            assert status == 2, out
        for arguments, part in [(["--tls-cert", path("one.crt"), "--tls-key", path("two.key")], "cannot use"),
                                (["--tls-cert", path("one.crt")], "go together"),
                                (["--tls-cert", "/nowhere", "--tls-key", path("one.key")], "/nowhere"),
                                (["--tls-cert", path("one.key"), "--tls-key", path("one.key")], "cannot use")]:
            assert part in refused("--postgres", "127.0.0.1:0", "--trust", *arguments)


def writers_write_and_no_files():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "t.csv"), "w") as file:
            file.write("a,b\n1,2\n3,4\n")
        with server("--writable", "--data", folder) as one, connect(one) as c, connect(one, user="bob", password="builder") as d:
            status, out, error = one.psql("-c", "CREATE TABLE m AS SELECT * FROM omp('sample.diabetes', 'label', 2)")
            assert (status, out) == (0, "CREATE TABLE\n"), (out, error)
            assert d.execute("SELECT count(*) FROM m").fetchone() == (2,)
            c.execute("CREATE TABLE n AS SELECT 1 AS a")
            assert c.execute("INSERT INTO n VALUES (2), (3)").rowcount == 2
            assert d.execute("SELECT sum(a) FROM n").fetchone() == (6,)
            c.execute("CREATE VIEW v AS SELECT * FROM n")
            c.execute("DROP TABLE m")
            assert code(d, "SELECT * FROM m")[0] == "42P01"
            for sql, expected in [("INSERT INTO t VALUES (5, 6)", "42501"), ("DROP TABLE t", "42501"), ("CREATE TABLE t AS SELECT 1 AS x", "42P07"),
                                  ("COPY n TO '/tmp/pursuit_out.csv'", "0A000"), ("CREATE OR REPLACE TABLE t AS SELECT 1 AS x", "42501"),
                                  ("CREATE EXTERNAL TABLE p STORED AS CSV LOCATION '/etc/passwd'", "42501"),
                                  ("CREATE EXTERNAL TABLE p STORED AS CSV LOCATION 'file:///etc/passwd'", "42501"),
                                  (f"CREATE EXTERNAL TABLE p STORED AS CSV LOCATION '{folder}/../../etc/passwd'", "42501"),
                                  ("CREATE EXTERNAL TABLE p STORED AS CSV LOCATION 'http://127.0.0.1:1/x.csv'", "42501"),
                                  ("CREATE SCHEMA s", "42501")]:
                sqlstate, message = code(c, sql)
                assert sqlstate == expected, (sql, sqlstate, message)
            c.execute(f"CREATE EXTERNAL TABLE again STORED AS CSV LOCATION '{folder}/t.csv' OPTIONS ('format.has_header' 'true')")
            assert c.execute("SELECT sum(a) FROM again").fetchone() == (4,)
            assert c.execute("SELECT sum(a) FROM t").fetchone() == (4,)


def sessions_are_apart():
    with server() as one, connect(one) as c, connect(one) as d:
        c.execute("SET datafusion.explain.logical_plan_only = true")
        assert len(c.execute("EXPLAIN SELECT 1").fetchall()) == 1
        assert len(d.execute("EXPLAIN SELECT 1").fetchall()) == 2
        c.execute("PREPARE p AS SELECT 1")
        assert code(d, "EXECUTE p")[0] != "00000"
        assert c.execute("EXECUTE p").fetchone() == (1,)
        assert code(c, "SET pursuit_no.such = 1")[0] != "XX000"


def limits_are_kept():
    with server("--max-selections", "2", "--max-selections-per-user", "1", "--wait", "1", "--max-connections", "4") as one:
        c, d, e = connect(one), connect(one), connect(one, user="bob", password="builder")
        thread = threading.Thread(target=code, args=(c, LONG))
        thread.start()
        until(lambda: one.metric('statements_running{kind="rows"}') + one.running() >= 1, 10, "a selection runs")
        time.sleep(0.5)
        begun = time.monotonic()
        sqlstate, message = code(d, LONG)
        assert sqlstate == "53400" and "your 1" in message, (sqlstate, message)
        assert 0.9 < time.monotonic() - begun < 3
        # Neither plain queries nor small selections wait for the network.
        for connection in [d, e]:
            begun = time.monotonic()
            assert connection.execute(OMP).fetchone()[1] == "bmi"
            assert time.monotonic() - begun < 1, "a small selection waited"
        f = connect(one)
        status, out, error = one.psql("-c", "SELECT 1")
        assert status == 2 and "53300" in error or "connections already" in error, error
        c.cancel()
        thread.join()
        [x.close() for x in (c, d, e, f)]
    with server("--memory-limit", "64MB") as one, connect(one) as c:
        sqlstate, message = code(c, "SELECT * FROM random_forest((SELECT * FROM sample_problem('linear', 2000000, 1)), label => label, k => 2)")
        assert sqlstate == "53200", (sqlstate, message)
        assert c.execute(OMP).fetchone()[1] == "bmi"
        until(lambda: one.metric("memory_reserved_bytes") == 0, 5, "memory is given back")
    with server("--memory-limit-per-user", "32MB") as one, connect(one) as c, connect(one, user="bob", password="builder") as d:
        sqlstate, message = code(c, "SELECT * FROM random_forest((SELECT * FROM sample_problem('linear', 2000000, 1)), label => label, k => 2)")
        assert sqlstate == "53200" and "a user may have" in message, (sqlstate, message)
        assert d.execute(OMP).fetchone()[1] == "bmi"
    with server("--memory-limit", "16MB", "--writable") as one, connect(one) as c:
        sqlstate, message = code(c, "CREATE TABLE big AS SELECT value AS a FROM generate_series(1, 10000000)")
        assert sqlstate == "53200", (sqlstate, message)


def what_happens_is_seen():
    with server("--log-sql") as one, connect(one) as c:
        assert one.http("/healthz") == (200, "ok\n")
        assert one.http("/nothing")[0] == 404
        c.execute(OMP).fetchall()
        code(c, "SELECT * FROM nowhere")
        assert 'pursuit_statements_total{kind="moments",outcome="ok"} 1' in one.http("/metrics")[1]
        lines = until_lines(one, 2)
        assert lines[0]["outcome"] == "ok" and lines[0]["rows"] == 3 and "omp" in lines[0]["sql"] and lines[0]["user"] == "ada", lines
        assert lines[1]["code"] == "42P01" and lines[1]["query"] != lines[0]["query"], lines
    with server() as one, connect(one) as c:
        code(c, "SELECT 'private'")
        until_lines(one, 1)
        assert "private" not in one.logged()


def remarks_are_notices():
    with server() as one, connect(one) as c:
        notices = []
        c.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        c.execute("SELECT * FROM omp('sample.diabetes', 'label', 3, '{\"sample_rows\": 100}')").fetchall()
        assert notices == ["omp: by 100 of 442 rows: sample_rows"], notices
        status, _, error = one.psql("-c", "SELECT * FROM omp(sample.diabetes, label => label, k => 3, sample_rows => 100)")
        assert status == 0 and "NOTICE" in error, error


def until_lines(one, number):
    until(lambda: len(one.lines("statement")) >= number, 5, "statements are logged")
    return one.lines("statement")


def the_end_is_orderly():
    short = "SELECT count(*) FROM sequential_attention((SELECT * FROM sample_problem('linear', 20000, 1)), label => label, k => 5, epochs => 3)"
    for grace, sql, expected in [("60", short, "00000"), ("1", LONG, "57P01")]:
        one = Server("--grace", grace)
        try:
            c, idle = connect(one), connect(one)
            answers = []
            thread = threading.Thread(target=lambda: answers.append(code(c, sql)))
            thread.start()
            until(lambda: one.running() == 1, 10, "the selection runs")
            one.process.terminate()
            until(lambda: one.http("/healthz")[0] == 503, 2, "it says that it ends")
            try:
                connect(one)
                raise AssertionError("a new connection was taken")
            except psycopg.OperationalError:
                pass
            thread.join(70)
            assert answers[0][0] == expected, answers
            assert one.process.wait(10) == 0
        finally:
            one.stop()


run([psql_answers_as_the_shell_does, psql_shows_what_there_is, mistakes_have_codes, parameters_are_values, cancel_is_quick,
     who_goes_away_stops_the_selection, passwords_are_asked_for, nobody_gets_in_by_going_on, tls_or_nothing, writers_write_and_no_files,
     sessions_are_apart, limits_are_kept, remarks_are_notices, what_happens_is_seen, the_end_is_orderly])
