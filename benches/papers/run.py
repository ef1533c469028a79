"""Driven by run.sh."""

import argparse
import os
import sys
import time

import attention
import criteo
import datum_wise
import ngp
import page
import shell

PARTS = {
    "Sequential attention for feature selection": (
        "Yasuda, Bateni, Chen, Fahrbach, Fu and Mirrokni, 2023.",
        [attention.table2, attention.penalties, attention.table3, attention.fig10, attention.fig12, attention.fig6, attention.fig14, criteo.criteo],
    ),
    "Neural greedy pursuit for feature selection": (
        "Das, Javid, Gohain, Eldar and Chatterjee, 2022.",
        [ngp.table_i, ngp.table_i_few, ngp.table_ii, ngp.fig3, ngp.fig5, ngp.departures],
    ),
    "Sequential approaches for learning datum-wise sparse representations": (
        "Dulac-Arnold, Denoyer, Preux and Gallinari, 2012.",
        [datum_wise.curves, datum_wise.table6, datum_wise.table7, datum_wise.fig8],
    ),
}

parser = argparse.ArgumentParser(prog="benches/papers/run.sh")
parser.add_argument("data", nargs="?", help="folder of Parquet files")
parser.add_argument("--quick", action="store_true", help="a short run of everything, on the sample tables")
parser.add_argument("--only", help="parts, separated by commas")
parser.add_argument("--list", action="store_true", help="name the parts and end")
parser.add_argument("--seeds", type=int, default=5, help="how many seeds where the papers have several")
parser.add_argument("--large-seeds", type=int, help="the same for sets of more than 10,000 rows; as many unless given")
parser.add_argument("--runs", type=int, default=100, help="how many tables of each size for figure 3 of neural greedy pursuit")
parser.add_argument("--rows", type=int, default=500_000, help="how many rows of the table of Criteo's shape")
parser.add_argument("--sets", help="only these sets of the sequential attention paper, separated by commas: mice, mnist, isolet, coil")
parser.add_argument("--splits", type=int, default=30, choices=range(1, 31), metavar="1..30", help="how many splits of the rows for datum-wise curves")
parser.add_argument("--fresh", action="store_true", help="ask again what was answered before")
parser.add_argument("--out", help="where papers.md and pictures/papers are written; docs, or benches/data with --quick")
arguments = parser.parse_args()

names = {part.__name__: part for _, parts in PARTS.values() for part in parts}
if arguments.list:
    print("\n".join(names))
    sys.exit()
if not arguments.quick and not (arguments.data and os.path.isdir(arguments.data)):
    sys.exit(f"papers: DATA must be a folder of Parquet files, got {arguments.data or 'none'}; --quick runs without")
only = arguments.only.split(",") if arguments.only else list(names)
unknown = [name for name in only if name not in names]
if unknown:
    sys.exit(f"papers: no part named {', '.join(unknown)}; parts are {', '.join(names)}")

mode = "quick" if arguments.quick else "full"
out = arguments.out or os.path.join(shell.ROOT, "benches/data" if arguments.quick else "docs")
os.makedirs(page.KEPT, exist_ok=True)
asked = shell.Shell(os.path.join(page.KEPT, mode + ".jsonl"), arguments.fresh)
failed, begun = [], time.time()

for name in only:
    context = page.Context(asked, arguments, out)
    print(f"{name}", file=sys.stderr, flush=True)
    try:
        names[name](context)
    except shell.Failed as error:
        # The other parts are worth having.
        failed.append(f"{name}: {error}")
        continue
    command = " ".join(["benches/papers/run.sh DATA --only", name, *context.shown])
    context.say("", f"<sub>`{command}`: {context.seconds:.0f} s</sub>", "")
    text = "\n".join(context.lines)
    print(text, flush=True)
    failed += context.failed
    asked.keep_section(name, text)

asked.read()  # Another run may have written sections meanwhile.
intro = f"""# The papers' tables, and ours

What three papers print beside what Pursuit measures, made by `benches/papers/run.sh DATA`{' --quick' if arguments.quick else ''}, which wrote this page and its pictures. Nothing here is typed in by
hand but the published figures (`benches/papers/published.py`). Selectors never see the rows that judge them. A part that was asked for alone (`--only`) replaces its section and leaves the others.
Seconds are those of the run that answered, on two cores that others used, too.
"""
document = [intro]
for title, (authors, parts) in PARTS.items():
    there = [asked.sections[part.__name__] for part in parts if part.__name__ in asked.sections]
    if there:
        document += [f"## {title}\n\n{authors}\n", *there]
with open(os.path.join(out, "papers.md"), "w") as file:
    file.write("\n".join(document).rstrip() + "\n")
print(f"papers: wrote {os.path.relpath(os.path.join(out, 'papers.md'))} in {time.time() - begun:.0f} s", file=sys.stderr)
if failed:
    sys.exit("papers: this does not hold:\n  " + "\n  ".join(failed))
