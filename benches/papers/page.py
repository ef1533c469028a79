"""What every part needs: the tables to read, the shell to ask, and the page to write on."""

import os
import statistics

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "papers"
import matplotlib.pyplot as plt
import pyarrow.parquet as pq

from shell import HERE

KEPT = os.path.join(HERE, "..", "data", "papers")


class Context:
    def __init__(self, shell, arguments, out):
        self.shell, self.data, self.is_quick = shell, arguments.data, arguments.quick
        self.seeds, self.large_seeds, self.splits, self.runs = arguments.seeds, arguments.large_seeds or arguments.seeds, arguments.splits, arguments.runs
        self.rows = 20_000 if self.is_quick else arguments.rows
        if self.is_quick:
            self.seeds, self.large_seeds, self.splits, self.runs = 1, 1, 2, 5
        self.sets = arguments.sets.split(",") if arguments.sets else None
        # How this was asked for, as far as it is not the default.
        given = {"--seeds": (self.seeds, 5), "--large-seeds": (self.large_seeds, self.seeds), "--splits": (self.splits, 30), "--runs": (self.runs, 100), "--rows": (self.rows, 500_000)}
        self.shown = ["--quick"] if self.is_quick else [f"{option} {value}" for option, (value, default) in given.items() if value != default]
        self.shown += [f"--sets {arguments.sets}"] if self.sets else []
        self.pictures = os.path.join(out, "pictures", "papers")
        self.lines, self.failed, self.seconds = [], [], 0.0
        os.makedirs(self.pictures, exist_ok=True)
        os.makedirs(KEPT, exist_ok=True)

    # --- reading ---

    def path(self, name):
        """The Parquet file of a set; without it, and where there is a sample table of that name, that one in a file. None: neither is there."""
        own = os.path.join(self.data, name + ".parquet") if self.data else ""
        if os.path.exists(own):
            return os.path.abspath(own)
        if name not in ("digits", "wine", "diabetes"):
            return None
        copy = os.path.join(KEPT, name + ".parquet")
        if not os.path.exists(copy):
            self.shell.run([f"COPY (SELECT * FROM sample.{name}) TO '{copy}'"])
        return copy

    def frame(self, name):
        return pq.read_table(self.path(name)).to_pandas()

    def ask(self, name, *statements):
        return self.timed(self.shell.ask(name, *statements))

    def remember(self, name, question, answer):
        return self.timed(self.shell.remember(name, question, answer))

    def timed(self, answer):
        self.seconds += self.shell.seconds
        return answer

    # --- writing ---

    def say(self, *lines):
        self.lines += lines

    def table(self, header, rows):
        self.say("", "| " + " | ".join(header) + " |", "|---" * len(header) + "|")
        self.say(*("| " + " | ".join(map(str, row)) + " |" for row in rows), "")

    def picture(self, name, draw, size=(6, 3.6)):
        figure, axes = plt.subplots(figsize=size)
        draw(axes)
        figure.savefig(os.path.join(self.pictures, name + ".svg"), metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
        self.show(name)

    def show(self, name):
        self.say("", f"![{name}](pictures/papers/{name}.svg)", "")

    def check(self, holds, what):
        """What must hold for the run to be worth anything; run.py fails if it does not."""
        if not holds:
            self.failed.append(what)


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.mean(values) if values else None


def spread(values):
    """`0.957 (0.001)`: mean and standard deviation."""
    return f"{mean(values):.3f}" + (f" ({statistics.stdev(values):.3f})" if len(values) > 1 else "")


def number(value, digits=3):
    return "–" if value is None else f"{value:.{digits}f}"


def text_list(names):
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"
