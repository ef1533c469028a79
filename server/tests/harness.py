"""Servers as an operator starts them, on loopback and on ports that are free."""
import json, os, shutil, subprocess, sys, tempfile, time, traceback, urllib.error, urllib.request
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
def server(*arguments, **options):
    one = Server(*arguments, **options)
    try:
        yield one
    except BaseException:
        print("---- log ----", one.logged()[-4000:], file=sys.stderr)
        raise
    finally:
        one.stop()


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
