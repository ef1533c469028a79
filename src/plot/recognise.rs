//! Which picture an answer is, by its columns.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, SchemaRef};
use pursuit_udfs::did_you_mean;

use super::picture::{Bars, Chart, Line, Picture, Scale};

/// How an answer is drawn, where it can be drawn in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bars,
    Curve,
    Path,
    Points,
    Grid,
}

const KINDS: [(&str, Kind); 5] =
    [("bars", Kind::Bars), ("curve", Kind::Curve), ("path", Kind::Path), ("points", Kind::Points), ("grid", Kind::Grid)];

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let names = KINDS.map(|(name, _)| name);
        let found = KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            format!("no kind of picture named `{word}`{} kinds are {}", did_you_mean(word, &names), names.join(", "))
        })
    }
}

/// What is asked of a picture beside the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    pub kind: Option<Kind>,
    /// Features are the pixels of an image with so many rows and columns.
    pub image: Option<(usize, usize)>,
    pub title: Option<String>,
}

/// Features that lines are drawn for: more cannot be told apart.
const LINES_MAX: usize = 14;
const NAMES_MAX: usize = 200;
const PIXELS_MAX: usize = 1 << 20;

/// The picture of an answer, or why there is none.
pub fn picture(schema: &SchemaRef, batches: &[RecordBatch], wish: &Wish) -> Result<Picture, String> {
    let batch = concat_batches(schema, batches).map_err(|error| error.to_string())?;
    if batch.num_rows() == 0 {
        return Err("the answer has no rows to draw".to_string());
    }
    let table = Table { batch };
    let has = |names: &[&str]| names.iter().all(|name| table.has(name));
    let (title, chart) = match wish.kind {
        _ if wish.image.is_some() => table.image(wish.image.unwrap_or_default())?,
        None | Some(Kind::Grid) if has(&["feature", "other", "correlation"]) => table.pairs("feature", "correlation")?,
        None | Some(Kind::Grid) if has(&["selector", "other", "jaccard"]) => table.pairs("selector", "jaccard")?,
        Some(Kind::Grid) if has(&["selector", "features"]) => table.choices()?,
        Some(Kind::Grid) if has(&["method", "feature", "rank"]) => table.ranks()?,
        None | Some(Kind::Points) if has(&["selector", "valid_score", "seconds"]) => {
            table.points("selector", "seconds", "valid_score")?
        }
        None | Some(Kind::Path) if has(&["step", "feature", "coefficient"]) => table.path()?,
        None | Some(Kind::Curve) if has(&["accuracy", "mean_features"]) => table.line("mean_features", "accuracy", None)?,
        None | Some(Kind::Bars) if has(&["feature", "frequency"]) => {
            table.bars("feature", "frequency", Some("standard_error"))?
        }
        Some(Kind::Curve) if has(&["rank", "valid_score"]) => table.line("rank", "valid_score", Some("valid_error"))?,
        Some(Kind::Curve) if has(&["rank", "train_score"]) => table.line("rank", "train_score", None)?,
        None | Some(Kind::Bars) if has(&["feature", "score"]) => table.bars("feature", "score", None)?,
        None | Some(Kind::Bars) if has(&["feature", "gain"]) => table.bars("feature", "gain", None)?,
        None | Some(Kind::Bars) => table.any_bars()?,
        Some(Kind::Curve) => table.any_line()?,
        Some(kind) => return Err(format!("the answer has no columns for a picture of the kind {}", kind.name())),
    };
    Ok(Picture { title: wish.title.clone().unwrap_or(title), chart })
}

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| *name)
    }
}

type Drawn = Result<(String, Chart), String>;

struct Table {
    batch: RecordBatch,
}

impl Table {
    fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let column = self.batch.column_by_name(name).ok_or_else(|| format!("the answer has no column `{name}`"))?;
        let texts = cast(column, &DataType::Utf8).map_err(|error| error.to_string())?;
        Ok(texts.as_string::<i32>().iter().map(|text| text.unwrap_or("").to_string()).collect())
    }

    fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>, String> {
        let column = self.batch.column_by_name(name).ok_or_else(|| format!("the answer has no column `{name}`"))?;
        let numbers = cast(column, &DataType::Float64).map_err(|error| error.to_string())?;
        Ok(numbers.as_primitive::<Float64Type>().iter().map(|x| x.filter(|x| x.is_finite())).collect())
    }

    /// One of the columns by its type, if there is one.
    fn first(&self, is_wanted: impl Fn(&DataType) -> bool) -> Option<&str> {
        let schema = self.batch.schema_ref();
        schema.fields().iter().find(|field| is_wanted(field.data_type())).map(|field| field.name().as_str())
    }

    /// What tells rankings in one answer apart: the method, or columns that are not of a ranking.
    fn group(&self) -> Result<Option<(String, Vec<String>)>, String> {
        for name in ["method", "selector"] {
            if self.has(name) {
                let texts = self.texts(name)?;
                if texts.iter().collect::<BTreeSet<_>>().len() > 1 {
                    return Ok(Some((name.to_string(), texts)));
                }
            }
        }
        let schema = self.batch.schema_ref();
        let is_ours =
            |name: &str| crate::answer::FIELDS.find(name).is_some() || ["feature", "step", "fold", "note"].contains(&name);
        let other = schema
            .fields()
            .iter()
            .find(|field| !is_ours(field.name()) && !field.data_type().is_floating() && !field.data_type().is_nested());
        match other {
            Some(field) if self.has("feature") && self.has("rank") => {
                let texts = self.texts(field.name())?;
                let several = texts.iter().collect::<BTreeSet<_>>().len();
                Ok((several > 1 && several < texts.len()).then(|| (field.name().clone(), texts)))
            }
            _ => Ok(None),
        }
    }

    fn title(&self, of: &str) -> String {
        let method = if self.has("method") { self.texts("method").unwrap_or_default() } else { Vec::new() };
        let methods: BTreeSet<&String> = method.iter().collect();
        match methods.into_iter().collect::<Vec<_>>()[..] {
            [one] => format!("{one}: {of}"),
            _ => of.to_string(),
        }
    }

    fn bars(&self, name: &str, value: &str, error: Option<&str>) -> Drawn {
        let (names, values) = (self.texts(name)?, self.numbers(value)?);
        let errors = match error.filter(|error| self.has(error)) {
            Some(error) => self.numbers(error)?.into_iter().map(|x| x.unwrap_or(0.0)).collect(),
            None => Vec::new(),
        };
        let title = self.title(&format!("{value} of each {name}"));
        let chart = match self.group()? {
            None => {
                // Rows without a value are those that were not chosen.
                let kept: Vec<usize> = (0..names.len()).filter(|row| values[*row].is_some()).take(NAMES_MAX).collect();
                if kept.is_empty() {
                    return Err(format!("the column `{value}` has no value to draw"));
                }
                let of = |column: &Vec<f64>| kept.iter().map(|row| column.get(*row).copied().unwrap_or(0.0)).collect();
                let errors = if errors.is_empty() { Vec::new() } else { of(&errors) };
                let series = vec![Bars { name: value.into(), values: kept.iter().map(|row| values[*row]).collect(), errors }];
                Chart::Bars { names: kept.iter().map(|row| names[*row].clone()).collect(), series, value: value.into() }
            }
            Some((_, groups)) => {
                let mut order: Vec<String> = Vec::new();
                let mut series: Vec<(String, BTreeMap<String, f64>)> = Vec::new();
                for ((name, group), x) in names.iter().zip(&groups).zip(&values) {
                    let Some(x) = x else { continue };
                    if !order.contains(name) && order.len() < NAMES_MAX {
                        order.push(name.clone());
                    }
                    let at = series.iter().position(|(known, _)| known == group).unwrap_or_else(|| {
                        series.push((group.clone(), BTreeMap::new()));
                        series.len() - 1
                    });
                    series[at].1.insert(name.clone(), *x);
                }
                let of = |(name, values): (String, BTreeMap<String, f64>)| Bars {
                    values: order.iter().map(|name| values.get(name).copied()).collect(),
                    name,
                    errors: Vec::new(),
                };
                let series = series.into_iter().map(of).collect();
                Chart::Bars { names: order.clone(), series, value: value.into() }
            }
        };
        Ok((title, chart))
    }

    fn any_bars(&self) -> Drawn {
        let text = self.first(|kind| kind.is_string() || matches!(kind, DataType::Dictionary(..)));
        let number = self.first(DataType::is_floating).or_else(|| self.first(DataType::is_numeric));
        match (text, number) {
            (Some(text), Some(number)) => self.bars(text, number, None),
            (None, Some(_)) => self.any_line(),
            _ => Err("the answer has no column of numbers to draw".to_string()),
        }
    }

    fn any_line(&self) -> Drawn {
        let schema = self.batch.schema_ref();
        let mut numbers =
            schema.fields().iter().filter(|field| field.data_type().is_numeric()).map(|field| field.name().as_str());
        match (numbers.next(), numbers.next()) {
            (Some(x), Some(y)) => self.line(x, y, None),
            _ => Err("a curve needs two columns of numbers".to_string()),
        }
    }

    /// One line for each group, with a band as wide as the error.
    fn line(&self, x: &str, y: &str, error: Option<&str>) -> Drawn {
        let (across, up) = (self.numbers(x)?, self.numbers(y)?);
        let errors = match error.filter(|error| self.has(error)) {
            Some(error) => self.numbers(error)?,
            None => vec![None; up.len()],
        };
        let groups = self.group()?.map_or_else(|| vec![String::new(); up.len()], |(_, groups)| groups);
        type Points = Vec<(f64, f64, Option<f64>)>;
        let mut lines: Vec<(String, Points)> = Vec::new();
        for row in 0..up.len() {
            let (Some(x), Some(y)) = (across[row], up[row]) else { continue };
            match lines.iter_mut().find(|(name, _)| *name == groups[row]) {
                Some((_, points)) => points.push((x, y, errors[row])),
                None => lines.push((groups[row].clone(), vec![(x, y, errors[row])])),
            }
        }
        if lines.is_empty() {
            return Err(format!("the columns `{x}` and `{y}` have no values to draw"));
        }
        let line = |(name, mut points): (String, Vec<(f64, f64, Option<f64>)>)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let has_band = points.iter().any(|(.., error)| error.is_some());
            let band = if has_band { points.iter().map(|(.., error)| error.unwrap_or(0.0)).collect() } else { Vec::new() };
            Line { name, points: points.into_iter().map(|(x, y, _)| (x, y)).collect(), band }
        };
        let lines = lines.into_iter().take(LINES_MAX).map(line).collect();
        Ok((self.title(&format!("{y} against {x}")), Chart::Lines { x: x.into(), y: y.into(), lines }))
    }

    /// The coefficient of each feature from step to step; those that grow largest.
    fn path(&self) -> Drawn {
        let (steps, features, values) = (self.numbers("step")?, self.texts("feature")?, self.numbers("coefficient")?);
        if values.iter().all(Option::is_none) {
            return self.line("step", if self.has("valid_score") { "valid_score" } else { "train_score" }, None);
        }
        let folds = if self.has("fold") { self.numbers("fold")? } else { vec![None; steps.len()] };
        let mut lines: BTreeMap<&String, Vec<(f64, f64)>> = BTreeMap::new();
        for row in (0..steps.len()).filter(|row| folds[*row].is_none()) {
            if let (Some(step), Some(value)) = (steps[row], values[row]) {
                lines.entry(&features[row]).or_default().push((step, value));
            }
        }
        let mut lines: Vec<(&String, Vec<(f64, f64)>)> = lines.into_iter().collect();
        let reach = |points: &[(f64, f64)]| points.iter().map(|(_, y)| y.abs()).fold(0.0, f64::max);
        lines.sort_by(|a, b| reach(&b.1).total_cmp(&reach(&a.1)));
        let line = |(name, mut points): (&String, Vec<(f64, f64)>)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { name: name.clone(), points, band: Vec::new() }
        };
        let lines = lines.into_iter().take(LINES_MAX).map(line).collect();
        Ok(("coefficients from step to step".into(), Chart::Lines { x: "step".into(), y: "coefficient".into(), lines }))
    }

    /// A number for each pair of names, both ways round.
    fn pairs(&self, name: &str, value: &str) -> Drawn {
        let (ones, others, values) = (self.texts(name)?, self.texts("other")?, self.numbers(value)?);
        let mut names: Vec<String> = Vec::new();
        for name in ones.iter().chain(&others) {
            if !names.contains(name) && names.len() < NAMES_MAX {
                names.push(name.clone());
            }
        }
        let at: BTreeMap<&String, usize> = names.iter().enumerate().map(|(at, name)| (name, at)).collect();
        let mut cells = vec![vec![None; names.len()]; names.len()];
        for ((one, other), x) in ones.iter().zip(&others).zip(values) {
            if let (Some(row), Some(column)) = (at.get(one), at.get(other)) {
                (cells[*row][*column], cells[*column][*row]) = (x, x);
            }
        }
        (0..names.len()).for_each(|at| cells[at][at] = Some(1.0));
        let scale = if value == "correlation" { Scale::Correlation } else { Scale::Amount };
        let chart = Chart::Grid { rows: names.clone(), columns: names, values: cells, value: value.into(), scale };
        Ok((format!("{value} of each two"), chart))
    }

    fn points(&self, name: &str, x: &str, y: &str) -> Drawn {
        let (names, across, up) = (self.texts(name)?, self.numbers(x)?, self.numbers(y)?);
        let points = names.into_iter().zip(across).zip(up).filter_map(|((name, x), y)| Some((name, x?, y?))).collect::<Vec<_>>();
        if points.is_empty() {
            return Err(format!("the columns `{x}` and `{y}` have no values to draw"));
        }
        Ok((format!("{y} against {x}"), Chart::Points { x: x.into(), y: y.into(), points }))
    }

    /// Which selector chose which features.
    fn choices(&self) -> Drawn {
        let selectors = self.texts("selector")?;
        let column = self.batch.column_by_name("features").ok_or("the answer has no column `features`")?;
        let lists = column.as_list_opt::<i32>().ok_or("the column `features` is no list")?;
        let mut features: Vec<String> = Vec::new();
        let mut chosen: Vec<Vec<String>> = Vec::new();
        for row in 0..lists.len() {
            let list = if lists.is_valid(row) { Some(lists.value(row)) } else { None };
            let names = list.map(|list| cast(&list, &DataType::Utf8)).transpose().map_err(|error| error.to_string())?;
            let names: Vec<String> = names
                .iter()
                .flat_map(|names| names.as_string::<i32>().iter().flatten().map(str::to_string).collect::<Vec<_>>())
                .collect();
            features.extend(names.iter().filter(|name| !features.contains(name)).cloned().collect::<Vec<_>>());
            chosen.push(names);
        }
        let cell =
            |feature: &String, names: &Vec<String>| names.iter().position(|name| name == feature).map(|at| at as f64 + 1.0);
        let values = features.iter().map(|feature| chosen.iter().map(|names| cell(feature, names)).collect()).collect();
        let chart = Chart::Grid { rows: features, columns: selectors, values, value: "rank".into(), scale: Scale::Amount };
        Ok(("rank by selector".into(), chart))
    }

    /// The rank that each method gives each feature.
    fn ranks(&self) -> Drawn {
        let (methods, features, ranks) = (self.texts("method")?, self.texts("feature")?, self.numbers("rank")?);
        let distinct = |all: &[String]| {
            let mut names: Vec<String> = Vec::new();
            all.iter().for_each(|name| {
                if !names.contains(name) {
                    names.push(name.clone())
                }
            });
            names
        };
        let (rows, columns) = (distinct(&features), distinct(&methods));
        let cell = |feature: &String, method: &String| {
            (0..ranks.len()).find(|row| features[*row] == *feature && methods[*row] == *method).and_then(|row| ranks[row])
        };
        let values = rows.iter().map(|feature| columns.iter().map(|method| cell(feature, method)).collect()).collect();
        Ok(("rank by method".into(), Chart::Grid { rows, columns, values, value: "rank".into(), scale: Scale::Amount }))
    }

    /// Features whose names end in the number of a pixel, row by row from the top left.
    fn image(&self, (rows, columns): (usize, usize)) -> Drawn {
        if rows == 0 || columns == 0 || rows.saturating_mul(columns) > PIXELS_MAX {
            return Err(format!("`image` must have from 1 to {PIXELS_MAX} pixels, got {rows} x {columns}"));
        }
        let value = ["score", "frequency", "gain"].into_iter().find(|name| self.has(name)).unwrap_or("score");
        let (features, values) = (self.texts("feature")?, self.numbers(value)?);
        let pixel =
            |name: &str| name.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<usize>().ok());
        let mut cells = vec![vec![0.0; columns]; rows];
        for (name, x) in features.iter().zip(values) {
            let at = pixel(name).ok_or_else(|| format!("`{name}` is no pixel: its name does not end in a number"))?;
            let cell = cells.get_mut(at / columns).and_then(|row| row.get_mut(at % columns));
            *cell.ok_or_else(|| format!("`{name}` lies outside of an image of {rows} x {columns} pixels"))? = x.unwrap_or(0.0);
        }
        Ok((self.title(&format!("{value} of each pixel")), Chart::Image { values: cells, value: value.into() }))
    }
}
