"""Sequential attention for feature selection: tables 2 and 3, figures 6, 7, 10, 11, 12 and 14."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import published
from page import KEPT, mean, number, spread, text_list

FILES = {"mnist": ("mnist_train", "mnist_test"), "isolet": ("isolet_train", "isolet_test"), "mice": ("mice_protein",), "coil": ("coil20",), "mnist_10000": ("mnist_test",)}
# What our names for the methods of table 2 stand for there.
OPTIONS = {"sequential_lasso": {"model": "mlp"}, "omp": {"model": "mlp"}}
TABLE2_NAMES = ["SA", "LLY", "GL", "SL", "OMP"]
# Nearer than this is the same: two standard deviations of the published rows.
NEAR = 0.01


def sets(context):
    """Names of the sets that are there."""
    if context.is_quick:
        return ["digits"]
    there = [name for name in published.SETS if name in FILES and all(map(context.path, FILES[name]))]
    return [name for name in there if context.sets is None or name in context.sets]


def missing(context, there):
    absent = [name for name in published.SETS if name not in there]
    if absent:
        context.say(f"Not here, or not asked for: {', '.join(absent)}.")


def seeds(context, name):
    return context.large_seeds if name in ("mnist", "fashion") else context.seeds


def size(context, k):
    return 20 if context.is_quick else k


def views(context, name, seed):
    """Views `train` and `test`: the set's own parts, or four fifths of the rows, drawn by the seed, and the rest."""
    files = FILES.get(name, (name,))
    if len(files) == 2:
        return [f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM '{context.path(file)}'" for view, file in zip(("train", "test"), files)]
    path = os.path.join(KEPT, f"{name}_split_{seed}.parquet")
    table = pq.read_table(context.path(files[0]))
    if not os.path.exists(path):
        order = np.random.RandomState(seed).permutation(len(table))
        place = np.empty(len(table), int)
        place[order] = np.arange(len(table))
        pq.write_table(table.append_column("place", pa.array(place)), path)
    cut = int(0.8 * len(table))
    return [f"CREATE OR REPLACE VIEW {view} AS SELECT * EXCLUDE (place) FROM '{path}' WHERE place {which} {cut}" for view, which in (("train", "<"), ("test", ">="))]


def accuracy(context, cell, name, selector, options, k, seed):
    """Test accuracy of a network that sees what a selector chose of the training rows."""
    chosen = f", selector => '{selector}', k => {k}" + (f", selector_options => '{json.dumps(options)}'" if options else "") if selector else ""
    call = f"evaluate(train, label => label, test => test, seed => {seed}{chosen})"
    title = "/".join([cell, name, selector or "all features", *map(str, options.values()), str(seed)])
    (answer,) = context.ask(title, *views(context, name, seed), f"SELECT value FROM {call} WHERE split = 'test' AND metric = 'accuracy'")
    return answer[0]["value"]


def accuracies(context, cell, name, selector, options, k):
    return [accuracy(context, cell, name, selector, options, k, seed) for seed in range(seeds(context, name))]


def remark(ours, theirs):
    return "" if ours >= theirs - NEAR else f"below by {theirs - ours:.3f}"


def compare(context, cell, columns, published_rows, k, there=None):
    """A table with two lines for each set, published and measured; `columns` are (heading, selector, options). Returns the measured means."""
    there = there or sets(context)
    k = size(context, k)
    rows, means = [], {}
    for name in there:
        measured = [accuracies(context, cell, name, selector, options, k) for _, selector, options in columns]
        means[name] = [mean(values) for values in measured]
        theirs = published_rows.get(name, [None] * len(columns))
        shown = [f"{pair[0]:.3f} ({pair[1]:.3f})" if isinstance(pair, tuple) else number(pair) for pair in theirs]
        rows.append([name, "published", *shown, ""])
        first = [pair[0] if isinstance(pair, tuple) else pair for pair in theirs]
        lower = [f"{heading} {remark(ours, their)}" for (heading, *_), ours, their in zip(columns, means[name], first) if their and remark(ours, their)]
        count = seeds(context, name)
        rows.append([f"{count} seed{'s' * (count > 1)}", "measured", *map(spread, measured), "; ".join(lower)])
    context.table(["", "", *(heading for heading, *_ in columns), "remark"], rows)
    missing(context, sets(context))
    if context.is_quick:
        context.check(all(value > 0.75 for values in means.values() for value in values), f"{cell}: digits with 20 features are told apart")
    return means


def bars(context, name, means, theirs, headings):
    def draw(axes):
        width = 0.8 / len(headings)
        for at, heading in enumerate(headings):
            x = np.arange(len(means)) + at * width
            axes.bar(x, [means[one][at] for one in means], width * 0.9, label=heading, color=f"C{at}")
            dots = [(x[i], theirs[one][at]) for i, one in enumerate(means) if one in theirs]
            axes.plot([x for x, _ in dots], [y[0] if isinstance(y, tuple) else y for _, y in dots], "k_", markersize=9)
        axes.set_xticks(np.arange(len(means)) + 0.4 - width / 2, list(means))
        axes.set(ylim=(0.7, 1.005), ylabel="test accuracy", title="bars: measured, lines: published")
        axes.legend(fontsize=7, ncol=3, loc="lower right")

    context.picture(name, draw)


def table2(context):
    context.say("### Table 2 and figure 7: accuracy with 50 features", "",
                "A network of 67 hidden units learns from 50 chosen features of the training rows and is judged by the test rows; mean and standard deviation of the seeds from 0 on. "
                "Mice and COIL-20 are split 80 to 20 anew by each seed. Every selector has its defaults on every set, where the paper has settings for each. "
                "`omp` and `sequential_lasso` are the neural ones (`model => 'mlp'`), LLY is `batch_attention`.")
    columns = [(f"{paper} `{selector}`", selector, OPTIONS.get(selector, {})) for paper, selector in zip(TABLE2_NAMES, published.TABLE2_METHODS)]
    columns.append(("all features", None, {}))
    columns.append(("backward", "sequential_attention", {"direction": "backward"}))
    rows = {name: [*pairs, published.ALL_FEATURES[name], None] for name, pairs in published.TABLE2.items()}
    means = compare(context, "table2", columns, rows, 50)
    bars(context, "table2", {name: values[:6] for name, values in means.items()}, rows, [*TABLE2_NAMES, "all"])
    context.say("*backward* is `direction => 'backward'`, which the paper does not have. The paper's Mice rests on a loader that spoils 49 of its 77 columns, which is why all features do worse there than 50; "
                "here missing values are the means of the training rows. The authors' OMP rates unselected inputs by weights that were never trained, and one mini-batch decides; ours rates them by the gradient over all rows.")


# The third is the default.
PENALTIES = [0.001, 0.003, 0.01, 0.03, 0.1]


def scaled(context, name, seed):
    """The training rows of a set with every feature between 0 and 1, as the papers have them; missing values stay."""
    files = FILES.get(name, (name,))
    path = os.path.join(KEPT, f"{name}_scaled_{seed if len(files) == 1 else 0}.parquet")
    if not os.path.exists(path):
        frame = context.frame(files[0])
        if len(files) == 1:
            frame = frame.iloc[np.random.RandomState(seed).permutation(len(frame))[: int(0.8 * len(frame))]]
        x = frame.drop(columns="label").astype("float32")
        x = (x - x.min()) / (x.max() - x.min()).replace(0, 1)
        x.assign(label=frame.label).to_parquet(path, index=False)
    return path


def penalties(context):
    context.say("### What the penalty and the scale do to GL and SL", "",
                "The paper does not print the penalties of GL and SL, and its features lie between 0 and 1. Here they have the same variance unless `standardize => false`, which makes a pixel that is rarely inked as wide as all others, "
                "and cheap to use under a penalty on weights. The same protocol, 50 features, seed 0; the penalty is 0.01 unless it is given.")
    methods, tried = ("group_lasso", "sequential_lasso"), PENALTIES[2:] if context.is_quick else PENALTIES
    there = sets(context)
    body = []
    for name in there:
        for selector in methods:
            theirs = published.TABLE2.get(name, [(None,)] * 5)[published.TABLE2_METHODS.index(selector)][0]
            k, model = size(context, 50), "".join(f", {option} => '{value}'" for option, value in OPTIONS.get(selector, {}).items())
            for scale, rows, more in (("variance", "train", ""), ("0 to 1", f"'{scaled(context, name, 0)}'", ", standardize => false")):
                row = []
                for penalty in tried:
                    call = f"{selector}({rows}, label => label, k => {k}, seed => 0, penalty => {penalty}{model}{more})"
                    (answer,) = context.ask(f"penalties/{name}/{selector}/{scale}/{penalty}", *views(context, name, 0), f"SELECT feature FROM {call} ORDER BY rank")
                    row.append(judged(context, f"penalties/{name}/{selector}/{scale}/{penalty}", name, [found["feature"] for found in answer]))
                body.append([name, f"`{selector}`", scale, number(theirs), *map(number, row)])
    context.table(["", "", "features of one", "published", *(f"penalty {penalty}" for penalty in tried)], body)
    missing(context, there)


def judged(context, title, name, features):
    """Test accuracy of a network that sees these features."""
    call = f"evaluate(train, label => label, test => test, seed => 0, features => {text_list(features)})"
    (answer,) = context.ask(title + "/judged", *views(context, name, 0), f"SELECT value FROM {call} WHERE split = 'test' AND metric = 'accuracy'")
    return answer[0]["value"]


def table3(context):
    context.say("### Table 3: other selectors", "",
                "The same protocol. The paper takes its rows from LassoNet's, where MNIST is the 10,000 test images alone, split 80 to 20; so it is here (`mnist_10000`). All features are as LassoNet's paper prints them.")
    columns = [*((f"`{name}`", name, {}) for name in published.TABLE3_METHODS), ("all features", None, {})]
    rows = {f"{name}_10000" if name == "mnist" else name: [*values, published.TABLE3_ALL[name]] for name, values in published.TABLE3.items()}
    compare(context, "table3", columns, rows, 50, [f"{name}_10000" if name == "mnist" else name for name in sets(context)])


def fig10(context):
    context.say("### Figure 10: features a round", "", "64 features, `per_round` of them chosen at once: the more, the less a choice knows of the ones before it.")
    rounds = [each for each in published.ROUNDS if each <= size(context, 64)]
    columns = [(str(each), "sequential_attention", {"per_round": each} if each > 1 else {}) for each in rounds]
    means = compare(context, "fig10", columns, published.FIG10, 64)

    def draw(axes):
        for at, (name, values) in enumerate(means.items()):
            axes.plot(rounds, values, "o-", color=f"C{at}", label=name)
            if name in published.FIG10:
                axes.plot(rounds, published.FIG10[name], "--", color=f"C{at}", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="features a round", ylabel="test accuracy", title="solid: measured, dashed: published")
        axes.legend(fontsize=7)

    context.picture("fig10", draw)


def fig12(context):
    context.say("### Figure 12: masks", "", "How attention weights become factors of the features (`mask`); 50 features. Starts and steps of the masks other than softmax are ours; the paper and its program do not tell theirs.")
    columns = [(f"`{mask}`", "sequential_attention", {"mask": mask} if mask != "softmax" else {}) for mask in published.MASKS]
    compare(context, "fig12", columns, published.FIG12, 50)


PIXELS = {"mnist": (28, 28), "coil": (20, 20), "digits": (8, 8)}


def fig6(context):
    """Figures 6 and 11."""
    context.say("### Figures 6 and 11: the pixels that are chosen", "", "Seed 0; the colour tells how early a pixel was chosen.")
    cells = []
    for name in sets(context):
        if name not in PIXELS:
            continue
        height, width = PIXELS[name]
        methods = published.TABLE2_METHODS if name != "coil" else published.TABLE2_METHODS[:1]
        for selector in methods[:1] if context.is_quick else methods:
            more = "".join(f", {option} => '{value}'" for option, value in OPTIONS.get(selector, {}).items())
            call = f"SELECT rank, feature, score FROM {selector}(train, label => label, k => {size(context, 50)}, seed => 0{more})"
            (answer,) = context.ask(f"fig6/{name}/{selector}", *views(context, name, 0), call)
            chosen = ", ".join(f"({row['rank']}, '{row['feature']}', {size(context, 50) - row['rank'] + 1.0})" for row in answer)
            file = f"pixels_{name}_{selector}"
            context.shell.plot(os.path.join(context.pictures, file + ".svg"), f"SELECT * FROM (VALUES {chosen}) AS t(rank, feature, score)", "--image", f"{height}x{width}")
            cells.append((f"{name}, `{selector}`", f"![{file}](pictures/papers/{file}.svg)"))
    for at in range(0, len(cells), 3):
        context.table([heading for heading, _ in cells[at : at + 3]], [[picture for _, picture in cells[at : at + 3]]])


def ranks(values):
    order = np.argsort(values, kind="stable")
    values = np.asarray(values)[order]
    rank = np.empty(len(values))
    rank[order] = (np.searchsorted(values, values, "left") + np.searchsorted(values, values, "right")) / 2
    return rank


def fig14(context):
    name, rows, steps = ("digits", 600, (0, 3)) if context.is_quick else ("mnist", 2000, (0, 9, 49))
    context.say("### Figure 14: attention stands for marginal gains", "",
                f"Spearman's correlation of the attention that features get in one round, and of what each would add (`marginal_gains`: a network for each of them, its loss on rows held out), given the first k that were chosen; {rows} rows of {name}. "
                "The paper draws it as clouds of points.")
    if name not in sets(context):
        context.say("Not here, so skipped: mnist.")
        return
    table = []
    first = [row["feature"] for row in context.ask(f"fig14/{name}", *views(context, name, 0), f"SELECT rank, feature FROM sequential_attention(train, label => label, k => {max(steps)}, swaps => false, seed => 0) ORDER BY rank")[0]]
    for given in steps:
        known = text_list(first[:given])
        few = views(context, name, 0) + [f"CREATE TABLE few AS SELECT * FROM train LIMIT {rows}", f"CREATE TABLE others AS SELECT * FROM test LIMIT {rows}"]
        of = f", given => {known}" if given else ""
        (gains,) = context.ask(f"fig14/{name}/{given}/gains", *few, f"SELECT feature, gain FROM marginal_gains(few, label => label, test => others, seed => 0{of})")
        k, forced = len(gains) + given, f", must_include => {known}" if given else ""
        call = f"sequential_attention(few, label => label, k => {k}, per_round => {k}, seed => 0{forced})"
        (attention,) = context.ask(f"fig14/{name}/{given}/attention", *few, f"SELECT feature, score FROM {call} WHERE rank > {given}")
        gain = {row["feature"]: row["gain"] for row in gains}
        pairs = [(row["score"], gain[row["feature"]]) for row in attention if row["feature"] in gain]
        spearman = float(np.corrcoef(*(ranks(side) for side in zip(*pairs)))[0, 1])
        table.append([given, len(pairs), number(spearman)])
    context.table(["k", "candidates", "Spearman"], table)
