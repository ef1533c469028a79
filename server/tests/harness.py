"""Servers and clusters as an operator starts them, on loopback and on ports that are free."""
import json, os, shutil, socket, subprocess, sys, tempfile, time, traceback, urllib.error, urllib.request
from contextlib import contextmanager

PURSUIT = os.environ["PURSUIT"]
USERS = "ada:lovelace\nbob:builder\n"
# Trains for minutes if nobody stops it.
LONG = ("SELECT * FROM sequential_attention((SELECT * FROM sample_problem('linear', 20000, 1)), label => label, k => 5, "
        "epochs => 100000)")


class Server:
    def __init__(self, *arguments, users=USERS, trust=False, cwd=None):
        self.folder = tempfile.mkdtemp()
        command = [PURSUIT, "serve", "--postgres", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *arguments]
        if trust:
            command.append("--trust")
        else:
            path = os.path.join(self.folder, "users")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(users)
            command += ["--users", path]
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=cwd)
        self.ports = {}
        expected = 2 + ("--flight" in arguments)
        while len(self.ports) < expected:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended: {self.logged()}")
            protocol, address = line.split()
            self.ports[protocol] = int(address.rsplit(":", 1)[1])

    def logged(self):
        with open(self.log.name) as file:
            return file.read()

    def lines(self, message):
        """Log lines of a kind."""
        lines = (json.loads(line) for line in self.logged().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("message") == message or line.get("fields", {}).get("message") == message]

    def http(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['metrics']}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        for line in self.http("/metrics")[1].splitlines():
            if line.startswith(f"pursuit_{name} "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def running(self):
        return sum(self.metric(f'statements_running{{kind="{kind}"}}') for kind in ["query", "moments", "rows"])

    def url(self, user="ada", password="lovelace", **options):
        options = {"connect_timeout": 10, **options}
        text = " ".join(f"{key}={value}" for key, value in options.items())
        return f"host=127.0.0.1 port={self.ports['postgres']} user={user} password={password} dbname=datafusion {text}"

    def psql(self, *arguments, user="ada", password="lovelace", **options):
        """Exit code, what was printed, and what was complained about."""
        command = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", *arguments, self.url(user, password, **options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def stopped(one):
    """Stops it in the end, and shows its log if a test fails."""
    try:
        yield one
    except BaseException:
        print("---- log ----", one.logged()[-4000:], file=sys.stderr)
        raise
    finally:
        one.stop()


def server(*arguments, **options):
    return stopped(Server(*arguments, **options))


def shell(sql, *arguments, seconds=180):
    """Exit code, the answer, and what was complained about."""
    done = subprocess.run([PURSUIT, "-q", "--format", "csv", *arguments, "-c", sql], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout, done.stderr


def table(folder, name, rows, columns, parts=4):
    """A table in some files."""
    os.mkdir(os.path.join(folder, name))
    features = ", ".join(f"sin(i * {0.37 + at * 0.61}) AS x{at}" for at in range(columns))
    for part in range(parts):
        source = f"SELECT i, {features} FROM (SELECT value AS i FROM generate_series({part * rows // parts + 1}, {(part + 1) * rows // parts}))"
        sql = f"COPY (SELECT * EXCLUDE (i), 2 * x0 - x3 + 0.5 * x1 + 0.1 * sin(i * 9.7) AS y, i % 3 AS g FROM ({source})) TO '{folder}/{name}/{part}.parquet'"
        status, _, error = shell(sql)
        assert status == 0, error
    return f"{folder}/{name}/"


def cpu(process):
    """Seconds of computing of a process."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Cluster:
    """A scheduler and some executors."""

    def __init__(self, executors, *arguments, timeout=8):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"df://127.0.0.1:{self.port}"
        self.folder = tempfile.mkdtemp()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.timeout = timeout
        self.executors = []
        self.start_scheduler()
        for _ in range(executors):
            self.start_executor(*arguments)
        with open(os.path.join(self.folder, "one.csv"), "w") as file:
            file.write("a\n1\n")
        self.until_it_answers()

    def start(self, *arguments):
        process = subprocess.Popen([PURSUIT, *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True)
        assert process.stdout.readline().startswith(arguments[0]), self.logged()
        return process

    def start_scheduler(self):
        self.scheduler = self.start("scheduler", "--listen", f"127.0.0.1:{self.port}", "--executor-timeout", str(self.timeout))

    def start_executor(self, *arguments):
        self.executors.append(self.start("executor", "--scheduler", f"127.0.0.1:{self.port}", "--tasks", "2", "--heartbeat", "1", *arguments))

    def until_it_answers(self):
        until(lambda: self.ask(f"SELECT a FROM '{self.folder}/one.csv'")[1] == "a\n1\n", 60, "the cluster answers")

    def ask(self, sql, **options):
        return shell(sql, "--cluster", self.url, **options)

    def logged(self):
        with open(self.log.name) as file:
            return file.read()

    def stop(self):
        for process in [self.scheduler, *self.executors]:
            process.kill()
            process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def cluster(*arguments, **options):
    return stopped(Cluster(*arguments, **options))


def until(condition, seconds, what):
    """Waits until something is so; how long it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - begun


def run(tests):
    """Runs all tests, or those whose names contain an argument."""
    chosen = [test for test in tests if not sys.argv[1:] or any(part in test.__name__ for part in sys.argv[1:])]
    failed = []
    for test in chosen:
        begun = time.monotonic()
        try:
            test()
        except Exception:
            traceback.print_exc()
            failed.append(test.__name__)
            continue
        print(f"ok {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
    if failed:
        sys.exit(f"failed: {failed}")
    print(f"{len(chosen)} tests passed")
