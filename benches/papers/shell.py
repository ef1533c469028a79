"""Asks the `pursuit` shell, and keeps what it answered."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")


def program():
    built = [os.path.join(ROOT, "target", profile, "pursuit") for profile in ("release", "debug")]
    candidates = [os.environ["PURSUIT"]] if "PURSUIT" in os.environ else built
    found = [path for path in candidates if os.path.exists(path)]
    if not found:
        sys.exit(f"papers: no program at {' or '.join(candidates)}; build it with `cargo build`, or name one as PURSUIT")
    return os.path.abspath(found[0])


class Failed(Exception):
    """The shell's own words."""


class Shell:
    """Answers are kept in a file by what was asked: another question, another answer."""

    def __init__(self, kept, is_fresh):
        self.program, self.kept = program(), kept
        self.answers, self.sections = {}, {}
        if not is_fresh:
            self.read()

    def ask(self, name, *statements, keep=True):
        """The answers to all SELECTs of one process, as lists of dictionaries."""
        return self.remember(name, "\n".join(statements), lambda: self.run(statements), keep)

    def remember(self, name, question, answer, keep=True):
        """What `answer()` returns, from the file if it was there before; the seconds are kept with it."""
        asked = hashlib.sha256(question.encode()).hexdigest()[:12]
        # Two parts may ask the same.
        key = next((key for key in self.answers if key.endswith(asked)), f"{name} {asked}")
        if key not in self.answers:
            start = time.perf_counter()
            answers = answer()
            seconds = time.perf_counter() - start
            if not keep:
                return answers
            self.answers[key] = {"key": key, "seconds": round(seconds, 3), "answer": answers}
            print(f"  {name}: {seconds:.1f} s", file=sys.stderr, flush=True)
            self.write(self.answers[key])
        self.seconds = self.answers[key]["seconds"]
        return self.answers[key]["answer"]

    def read(self):
        """A line for each answer and each section, of which the last counts; an interrupted run may have left half a line."""
        if not os.path.exists(self.kept):
            return
        with open(self.kept) as file:
            for line in file:
                try:
                    kept = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if "section" in kept:
                    self.sections[kept["section"]] = kept["text"]
                else:
                    self.answers[kept["key"]] = kept

    def write(self, kept):
        with open(self.kept, "a") as file:
            file.write(json.dumps(kept) + "\n")

    def keep_section(self, name, text):
        self.sections[name] = text
        self.write({"section": name, "text": text})

    def run(self, statements):
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(";\n".join(statements) + ";\n")
            file.flush()
            command = [self.program, "-q", "--format", "json", "--maxrows", "inf", "-f", file.name]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip())
        asked = sum(statement.lstrip().upper().startswith(("SELECT", "WITH")) for statement in statements)
        answers, decoder, text = [], json.JSONDecoder(), done.stdout.strip()
        while text:
            answer, end = decoder.raw_decode(text)
            answers.append(answer)
            text = text[end:].lstrip()
        # What makes a table or a view answers with nothing, or with a count.
        return answers[-asked:] if asked else []

    def plot(self, file, sql, *arguments):
        subprocess.run([self.program, "plot", "-q", "-c", sql, *arguments, "-o", file], check=True)
