"""The league: which selector's columns predict best, on tables plain and spoiled.

    benches/quality.sh DATA [--tables california,adult+random] [--selectors omp,xgboost_gain] [--seeds 3] [--first 20] [--rows 10000] [--answers FILE] [--renew omp,boosting]

A spoiled table has as many columns more as it had (Cherepanova et al., 2023): `random` numbers, `corrupted` copies, `products` of pairs; k is the number of
columns that it had. Of a plain table k is about a third of the columns. Judges are a network and boosting of scikit-learn, on test rows; the score is the accuracy
or R². A selector's loss in a cell (a table and a judge) is what it falls short of the best in that cell.

Each seed parts a table anew, selects anew and judges anew; the score of a cell is the mean. A table of more than 1,000 rows is asked three times at most, and Adult and California once: their
test rows are enough. (Those of flights are not, many as they are: a few enormous delays are most of the variance.)
Seeds are counted from --first on: defaults that were chosen with some partings in view are shown on others.

A table that is not in the list is a file of the folder with a column `label`; it is spoiled if that is asked for by name.

What is in the file of answers already is not measured again, but for the selectors named by --renew. The same set of columns is judged once.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
import xgboost
from mrmr import mrmr_classif, mrmr_regression
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import RFE, f_classif, f_regression, mutual_info_classif, mutual_info_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

warnings.filterwarnings("ignore")
SHELL = pathlib.Path(os.environ.get("PURSUIT", pathlib.Path(__file__).parent.parent / "target/release/pursuit"))
LEVELS = 50
# Of the rivals. Two that wait for each other on a busy machine take longer than one.
THREADS = int(os.environ.get("THREADS", "2"))
# Name, file, label, k, columns left out, rows used at most.
TABLES = [
    ("california", "california_housing", 3, [], None),
    ("boston", "boston_housing", 4, [], None),
    ("diabetes", "diabetes_regression", 3, [], None),
    ("wine", "wine", 4, [], None),
    ("cancer", "breast_cancer_wdbc", 10, [], None),
    ("heart", "heart", 4, [], None),
    ("sonar", "sonar", 20, [], None),
    ("digits", "digits", 20, [], None),
    ("mice", "mice_protein", 25, [], None),
    ("adult", "adult", 5, [], None),
    ("nycflights", "nycflights", 5, ["dep_delay", "arr_time", "air_time", "dep_time", "tailnum", "time_hour"], 40_000),
]
SPOILED = ["california", "wine", "digits", "adult"]
SPOILS = ["random", "corrupted", "products"]


# Of tables that are not in the list.
OTHER_ROWS = 20_000
# Of more rows three partings are enough, of some tables one.
MANY_ROWS, PARTINGS = 1_000, 3
ONCE = ["california", "adult"]


def cells(data, wanted, rows, seeds):
    """Name, seed, rows to select and learn from (at most so many), rows to judge by, k."""
    known = [name for name, *_ in TABLES]
    others = [(name, name, None, [], OTHER_ROWS) for name in sorted({name.partition("+")[0] for name in wanted}) if name not in known]
    for name, file, k, dropped, most in TABLES + others:
        for spoil in [None] + SPOILS:
            full = name if spoil is None else f"{name}+{spoil}"
            if full not in wanted and (spoil and name not in SPOILED or wanted and name not in wanted):
                continue
            for seed in seeds:
                if file == "adult":
                    train, test = (pd.read_parquet(data / f"adult_{part}.parquet") for part in ("train", "test"))
                else:
                    frame = pd.read_parquet(data / f"{file}.parquet").drop(columns=dropped).sample(frac=1, random_state=7 + seed)
                    frame = frame[:most].reset_index(drop=True)
                    cut = int(0.7 * len(frame))
                    train, test = frame[:cut].copy(), frame[cut:].copy()
                partings = 1 if name in ONCE else PARTINGS
                if seed >= seeds[0] + partings and len(train) + len(test) > MANY_ROWS:
                    break
                if rows and len(train) > rows:
                    train = train.sample(rows, random_state=7)
                k = k or max(2, round((train.shape[1] - 1) / 3))
                if spoil:
                    k = train.shape[1] - 1
                    train, test = spoiled(train, test, spoil, seed)
                yield full, seed, train.reset_index(drop=True), test.reset_index(drop=True), k


def spoiled(train, test, spoil, seed):
    """Adds as many columns as there are; what they are made with is of the training rows."""
    random = np.random.default_rng(11 + seed)
    features = [name for name in train.columns if name != "label"]
    numbers = [name for name in features if pd.api.types.is_numeric_dtype(train[name])]
    extra = [{}, {}]
    pairs = random.permutation([(a, b) for at, a in enumerate(numbers) for b in numbers[at:]])
    for at, name in enumerate(features):
        for part, frame in enumerate((train, test)):
            rows = len(frame)
            if spoil == "random":
                column = random.normal(size=rows)
            elif spoil == "products":
                a, b = pairs[at % len(pairs)]
                column = frame[a].astype(float) * frame[b].astype(float)
            elif name in numbers:
                column = frame[name].astype(float) + random.normal(size=rows) * train[name].astype(float).std()
            else:
                # Of a text, half of the values are somebody else's.
                others = train[name].sample(rows, replace=True, random_state=random.integers(1 << 30)).to_numpy()
                column = np.where(random.random(rows) < 0.5, others, frame[name].to_numpy())
            extra[part][f"{spoil}_{at}"] = column
    join = lambda frame, more: pd.concat([frame, pd.DataFrame(more, index=frame.index)], axis=1)
    train, test = join(train, extra[0]), join(test, extra[1])
    # The extra columns must not all stand behind the others.
    order = list(random.permutation([name for name in train.columns if name != "label"])) + ["label"]
    return train[order], test[order]


class Codes:
    """A table for the rivals: texts as codes of their levels by frequency, missing numbers as means."""

    def __init__(self, train):
        self.names = [name for name in train.columns if name != "label"]
        self.texts = [name for name in self.names if not pd.api.types.is_numeric_dtype(train[name])]
        self.levels = {name: list(train[name].astype(object).fillna("?").value_counts().index[:250]) for name in self.texts}
        self.means = {name: train[name].astype(float).mean() for name in self.names if name not in self.texts}

    def of(self, frame, names=None):
        columns = []
        for name in names or self.names:
            if name in self.texts:
                places = {level: at for at, level in enumerate(self.levels[name])}
                columns.append(frame[name].astype(object).fillna("?").map(places).fillna(len(places)).to_numpy(float))
            else:
                columns.append(frame[name].astype(float).fillna(self.means[name]).to_numpy())
        return np.column_stack(columns)


def ours(call):
    def choose(train, k, is_class, seed):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.parquet"
            train.to_parquet(path)
            name, _, options = call.partition("(")
            sql = f"SELECT feature FROM {name}('{path}', label => label, k => {k}, seed => {seed}{', ' + options.rstrip(')') if options else ''}) WHERE rank IS NOT NULL ORDER BY rank"
            done = subprocess.run([SHELL, "-q", "--format", "json", "-c", sql], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            return [row["feature"] for row in json.loads(done.stdout)][:k]

    return choose


def by(score):
    """The k columns with the largest scores."""

    def choose(train, k, is_class, seed):
        codes = Codes(train)
        scores = np.nan_to_num(score(codes, codes.of(train), train["label"].to_numpy(), is_class, k), nan=-np.inf)
        return [codes.names[at] for at in np.argsort(-scores, kind="stable")[:k]]

    return choose


def f_test(codes, x, y, is_class, k):
    return (f_classif if is_class else f_regression)(x, y)[0]


def mutual_information(codes, x, y, is_class, k):
    texts = np.array([name in codes.texts for name in codes.names])
    return (mutual_info_classif if is_class else mutual_info_regression)(x, y, discrete_features=texts, random_state=0)


def l1(codes, x, y, is_class, k):
    x = StandardScaler().fit_transform(x)
    if not is_class:
        return np.abs(LassoCV(random_state=0).fit(x, y).coef_)
    # The penalty that leaves about k.
    for c in np.geomspace(0.001, 10, 12):
        model = LogisticRegression(penalty="l1", C=c, solver="saga", max_iter=200, random_state=0).fit(x, y)
        weights = np.abs(model.coef_).max(axis=0)
        if (weights > 1e-6).sum() >= k:
            break
    return weights


def rfe(codes, x, y, is_class, k):
    model = LogisticRegression(max_iter=300) if is_class else LinearRegression()
    return -RFE(model, n_features_to_select=k, step=0.1).fit(StandardScaler().fit_transform(x), y).ranking_.astype(float)


def forest(codes, x, y, is_class, k):
    model = RandomForestClassifier if is_class else RandomForestRegressor
    return model(100, n_jobs=THREADS, random_state=0).fit(x, y).feature_importances_


def xgboost_gain(codes, x, y, is_class, k):
    model = xgboost.XGBClassifier if is_class else xgboost.XGBRegressor
    return model(n_estimators=100, n_jobs=THREADS, random_state=0, importance_type="gain").fit(x, y).feature_importances_


def mrmr(train, k, is_class, seed):
    codes = Codes(train)
    frame = pd.DataFrame(codes.of(train), columns=codes.names)
    choose = mrmr_classif if is_class else mrmr_regression
    return choose(X=frame, y=train["label"].astype(float), K=k, show_progress=False)


OURS = {
    "omp": ours("omp"),
    "sequential_attention": ours("sequential_attention"),
    "backward": ours("sequential_attention(direction => 'backward')"),
    "boosting": ours("boosting"),
    "random_forest": ours("random_forest"),
    "group_lasso": ours("group_lasso"),
    "lasso": ours("lasso"),
    "correlation": ours("correlation"),
    "ngp": ours("ngp"),
    "deep_lasso": ours("deep_lasso"),
    "select_features": ours("select_features"),
}
RIVALS = {
    "f_test": by(f_test),
    "mutual_information": by(mutual_information),
    "l1": by(l1),
    "rfe": by(rfe),
    "mrmr": mrmr,
    "sklearn_forest": by(forest),
    "xgboost_gain": by(xgboost_gain),
    "no selection": lambda train, k, is_class, seed: [name for name in train.columns if name != "label"],
}
# Their cost grows too fast for these tables.
TOO_SLOW = {"ngp": 20_000}


def judges(train, test, chosen, is_class, seed):
    """The scores of both judges."""
    codes = Codes(train)
    # In the table's order: a set has one verdict.
    chosen = [name for name in codes.names if name in chosen]
    if not chosen:
        return {"mlp": float("nan"), "boosting": float("nan")}
    y = train["label"].to_numpy()
    texts = [name for name in chosen if name in codes.texts]
    numbers = [name for name in chosen if name not in codes.texts]
    boosted = (HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor)(
        categorical_features=[at for at, name in enumerate(chosen) if name in texts] or None, random_state=seed
    ).fit(codes.of(train, chosen), y)
    by_boosting = boosted.score(codes.of(test, chosen), test["label"])
    encoder = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("texts", OneHotEncoder(max_categories=LEVELS, handle_unknown="infrequent_if_exist", sparse_output=False), texts),
        ]
    )
    clean = lambda frame: frame[chosen].assign(**{name: frame[name].astype(object).fillna("?") for name in texts})
    x, others = encoder.fit_transform(clean(train)), encoder.transform(clean(test))
    # Numbers as labels are scaled; R² does not mind.
    middle, spread = (0, 1) if is_class else (y.mean(), y.std())
    network = (MLPClassifier if is_class else MLPRegressor)(
        hidden_layer_sizes=(100,), batch_size=min(256, max(16, len(y) // 8)), max_iter=40 if len(y) > 5000 else 300, random_state=seed
    ).fit(x, y if is_class else (y - middle) / spread)
    goal = test["label"] if is_class else (test["label"] - middle) / spread
    return {"mlp": float(network.score(others, goal)), "boosting": float(by_boosting)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--tables", default="")
    parser.add_argument("--selectors", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, help="rows to select and learn from, at most; all rows held out judge")
    parser.add_argument("--answers", type=pathlib.Path, help="a file of JSON lines that keeps what was measured")
    parser.add_argument("--renew", default="", help="selectors that are measured again although the file has them")
    given = parser.parse_args()
    wanted = set(filter(None, given.tables.split(",")))
    selectors = OURS | RIVALS
    names = [name for name in selectors if not given.selectors or name in given.selectors.split(",")]
    kept = Answers(given, given.renew.split(","))
    answers = []
    for table, seed, train, test, k in cells(given.data, wanted, given.rows, range(given.first, given.first + given.seeds)):
        is_class = train["label"].nunique() <= 32
        for name in names:
            if len(train) > TOO_SLOW.get(name, len(train)):
                continue
            answer = kept.answer(table, seed, name)
            if answer is None:
                start = time.perf_counter()
                try:
                    chosen = selectors[name](train, k, is_class, seed)
                except RuntimeError as error:
                    print(f"{table:<22}{name:<22}{error}", flush=True)
                    continue
                answer = {"table": table, "seed": seed, "selector": name, "k": k, "rows": given.rows}
                answer |= {"seconds": time.perf_counter() - start, "chosen": chosen}
                answer |= kept.verdict(table, seed, chosen) or judges(train, test, chosen, is_class, seed)
                kept.keep(answer)
            answers.append(answer)
            chosen = answer["chosen"]
            shown = ", ".join(chosen[:6]) + (" …" if len(chosen) > 6 else "")
            print(f"{table:<22}{seed:<3}{name:<22}{answer['mlp']:8.3f}{answer['boosting']:8.3f}{answer['seconds']:8.1f} s  {shown}", flush=True)
    league(answers)


class Answers:
    """What was measured before, in a file of JSON lines. Of several answers to one question the last counts."""

    def __init__(self, given, renewed):
        self.path, rows = given.answers, given.rows
        lines = self.path.read_text().splitlines() if self.path and self.path.exists() else []
        self.known = [answer for answer in map(json.loads, lines) if answer["rows"] == rows]
        self.old = {(answer["table"], answer["seed"], answer["selector"]): answer for answer in self.known if answer["selector"] not in renewed}

    def answer(self, table, seed, selector):
        return self.old.get((table, seed, selector))

    def verdict(self, table, seed, chosen):
        """Judges see a set, not an order."""
        for other in self.known:
            if (other["table"], other["seed"]) == (table, seed) and set(other["chosen"]) == set(chosen):
                return {judge: other[judge] for judge in ("mlp", "boosting")}

    def keep(self, answer):
        self.known.append(answer)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(answer) + "\n")


def league(answers):
    scores = pd.DataFrame(
        [
            {"table": answer["table"], "judge": judge, "seed": answer["seed"], "selector": answer["selector"], "score": answer[judge]}
            for answer in answers
            for judge in ("mlp", "boosting")
        ]
    )
    seeds = scores.pivot(index=["table", "judge", "seed"], columns="selector", values="score")
    # Only where every seed was answered.
    table = seeds.groupby(level=[0, 1], sort=False).agg(lambda column: column.mean(skipna=False))
    # Twice the standard error of a selector's lead over the others, from seed to seed; what one seed cannot tell is a guess.
    leads = seeds.sub(seeds.mean(axis=1), axis=0).groupby(level=[0, 1], sort=False)
    noise = (2 * leads.std().median(axis=1) / np.sqrt(leads.size())).fillna(0.002)
    ranked = table.drop(columns="no selection", errors="ignore")
    losses = ranked.sub(ranked.max(axis=1), axis=0).abs()
    ranks = ranked.rank(axis=1, ascending=False)
    everywhere = ranked.notna().all()
    print("\nscores, the mean of both judges")
    print(table.groupby(level=0, sort=False).mean().T.to_string(float_format="{:.3f}".format))
    print(f"\n{'selector':<22}{'loss':>8}{'rank':>7}{'cells':>7}{'losses above noise':>20}{'below no selection':>20}")
    for name in losses.mean().sort_values().index:
        above = int((losses[name] > noise).sum())
        below = int((table[name] < table["no selection"] - noise).sum()) if "no selection" in table else 0
        mark = "" if everywhere[name] else "  (not on all tables)"
        print(f"{name:<22}{losses[name].mean():8.4f}{ranks[name].mean():7.2f}{losses[name].notna().sum():7}{above:20}{below:20}{mark}")
    ours_best, rivals_best = (ranked[[name for name in ranked if name in group]].max(axis=1) for group in (OURS, RIVALS))
    print(f"\nbest of ours less best of the rivals, mean over cells: {(ours_best - rivals_best).mean():+.4f}")


if __name__ == "__main__":
    main()
