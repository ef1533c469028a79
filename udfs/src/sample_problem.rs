//! Tables made up so that the answer is known: the problems of Das et al. (2022), and planted ones.

use crate::settings::options::{one_of, read, show};
use crate::{Check, Error, Random, Result, Run, Settings, Value, did_you_mean, options};

options! {
    /// What may be set of a sample problem besides its name, its rows and its seed.
    pub struct SampleOptions {
        /// How many columns besides the label. NULL: 500 for artificial, 20 for linear, otherwise 10.
        columns: Option<usize> = None, Check::Between(1.0, 100000.0);
        /// Standard deviation of what is added to the label of each row.
        noise: f64 = 0.0, Check::Between(0.0, 1e12);
        /// How many columns carry the label of linear (NULL: 5) and interaction (NULL: 2, an even number).
        support: Option<usize> = None, Check::Between(1.0, 100000.0);
        /// How many tables, one below the other, told apart by a column `run`. NULL: one, without that column.
        runs: Option<usize> = None, Check::Between(1.0, 1000000.0);
    }
}

/// Names of the problems.
pub const SAMPLE_PROBLEMS: [&str; 6] = ["ohm", "planck", "gravitation", "artificial", "linear", "interaction"];

/// Most numbers in a table.
const NUMBERS_MAX: usize = 1 << 28;

/// Most rows and most numbers of a piece.
const PIECE_ROWS: usize = 8192;
const PIECE_NUMBERS: usize = 1 << 20;

/// A table to be made up: checked, and not yet made.
///
/// - `ohm` V / R, `planck` 2ν³ / (exp(ν/T) − 1), `gravitation` m₁m₂ / r²: features uniform between 10 and 20.
/// - `artificial`: equation 4 of Das et al., of five features among normal ones with correlation ½. As in the authors' code its disturbance is
///   one number for the whole table; `noise` adds one to each row.
/// - `linear`: 3 x1 + 2.6 x2 + 2.2 x3 …; `interaction`: x1 x2 + x3 x4 …, which no feature alone explains; features standard normal.
#[derive(Debug, Clone)]
pub struct SampleProblem {
    name: String,
    rows: usize,
    seed: u64,
    noise: f64,
    /// How many tables there are, if they are to be told apart.
    pub runs: Option<usize>,
    /// The columns that carry the label, then those that do not, `noise_3`, `noise_4`, …, then `label`.
    pub names: Vec<String>,
    support: usize,
}

impl SampleProblem {
    pub fn new(name: &str, rows: usize, seed: u64, settings: &Settings) -> Result<Self> {
        let options: SampleOptions = read(settings)?;
        let name = name.to_lowercase();
        if !SAMPLE_PROBLEMS.contains(&name.as_str()) {
            let hint = did_you_mean(&name, &SAMPLE_PROBLEMS);
            return Err(Error::call(format!("no problem named `{name}`{hint} problems are {}", SAMPLE_PROBLEMS.join(", "))));
        }
        let relevant = relevant(&name, &options)?;
        let columns = options.columns.unwrap_or(match name.as_str() {
            "artificial" => 500,
            "linear" => 20,
            _ => 10,
        });
        let (runs, support) = (options.runs.unwrap_or(1), relevant.len());
        if columns < support {
            return Err(Error::call(format!(
                "`columns` must be at least {support}, which carry the label of {name}; got {columns}"
            )));
        }
        if rows == 0 {
            return Err(Error::call("rows must be at least 1, got 0"));
        }
        if rows.saturating_mul(columns + 2).saturating_mul(runs) > NUMBERS_MAX {
            return Err(Error::call(format!(
                "{runs} × {rows} rows of {columns} columns are too many; ask for at most {NUMBERS_MAX} numbers"
            )));
        }
        let others = (support..columns).map(|at| format!("noise_{}", at + 1));
        let names: Vec<String> = relevant.into_iter().chain(others).chain(["label".to_string()]).collect();
        Ok(Self { name, rows, seed, noise: options.noise, runs: options.runs, names, support })
    }

    /// The columns of one table, in the order of the names.
    pub fn table(&self, run: usize) -> Vec<Vec<f64>> {
        let mut table = vec![Vec::with_capacity(self.rows); self.names.len()];
        for mut piece in self.pieces(run) {
            table.iter_mut().zip(&mut piece).for_each(|(column, values)| column.append(values));
        }
        table
    }

    /// The same table piece by piece: as few rows at once as fit into a modest buffer, however many there are.
    pub fn pieces(&self, run: usize) -> impl Iterator<Item = Vec<Vec<f64>>> + Send + use<> {
        let problem = self.clone();
        let columns = problem.names.len() - 1;
        let mut random = Run::new(problem.seed).random("sample problem", run as u64);
        let offset = if problem.name == "artificial" { random.normal() } else { 0.0 };
        let at_once = (PIECE_NUMBERS / problem.names.len()).clamp(1, PIECE_ROWS);
        let mut left = problem.rows;
        std::iter::from_fn(move || {
            let rows = left.min(at_once);
            left -= rows;
            let mut piece = vec![Vec::with_capacity(rows); columns + 1];
            for _ in 0..rows {
                let x = features(&problem.name, columns, &mut random);
                let noise = if problem.noise > 0.0 { problem.noise * random.normal() } else { 0.0 };
                let label = offset + label(&problem.name, problem.support, &x) + noise;
                x.into_iter().chain([label]).zip(&mut piece).for_each(|(value, column)| column.push(value));
            }
            (rows > 0).then_some(piece)
        })
    }
}

/// The names of the columns that carry the label.
fn relevant(name: &str, options: &SampleOptions) -> Result<Vec<String>> {
    let named = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let plain = |n: usize| (1..=n).map(|at| format!("x{at}")).collect();
    let is_planted = matches!(name, "linear" | "interaction");
    if let (Some(support), false) = (options.support, is_planted) {
        let planted = one_of(&["linear", "interaction"]);
        return Err(Error::call(format!(
            "`support` is for {planted}, and {name} has its own; got {}",
            show(&Value::from(support))
        )));
    }
    Ok(match name {
        "ohm" => named(&["voltage", "resistance"]),
        "planck" => named(&["frequency", "temperature"]),
        "gravitation" => named(&["mass_1", "mass_2", "distance"]),
        "artificial" => plain(5),
        "linear" => plain(options.support.unwrap_or(5)),
        _ => match options.support.unwrap_or(2) {
            odd if odd % 2 == 1 => {
                return Err(Error::call(format!("`support` must be an even number for interaction, got {odd}")));
            }
            even => plain(even),
        },
    })
}

fn features(name: &str, columns: usize, random: &mut Random) -> Vec<f64> {
    match name {
        "ohm" | "planck" | "gravitation" => (0..columns).map(|_| 10.0 + 10.0 * random.uniform()).collect(),
        "artificial" => {
            let shared = random.normal();
            (0..columns).map(|_| (shared + random.normal()) / 2.0).collect()
        }
        _ => (0..columns).map(|_| random.normal()).collect(),
    }
}

fn label(name: &str, support: usize, x: &[f64]) -> f64 {
    match name {
        "ohm" => x[0] / x[1],
        "planck" => 2.0 * x[0].powi(3) / ((x[0] / x[1]).exp() - 1.0),
        "gravitation" => x[0] * x[1] / (x[2] * x[2]),
        "artificial" => {
            let ratio = (10.0 * x[0].max(x[1]).sin() + x[2].max(x[3]).max(x[4]).powi(3)) / (1.0 + (x[0] + x[4]).powi(2));
            let bend = (0.5 * x[2]).sin() * (1.0 + (x[3] - 0.5 * x[2]).exp());
            ratio + bend + x[2] * x[2] + 2.0 * x[3].sin() + 2.0 * x[4]
        }
        "linear" => (0..support).map(|at| f64::max(3.0 - 0.4 * at as f64, 0.4) * x[at]).sum(),
        _ => x[..support].chunks_exact(2).map(|pair| pair[0] * pair[1]).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str, rows: usize, json: &str) -> Result<SampleProblem> {
        SampleProblem::new(name, rows, 1, &serde_json::from_str(json).unwrap())
    }

    #[test]
    fn labels_follow_the_law() {
        let problem = problem("ohm", 50, "{}").unwrap();
        let names: Vec<&str> = problem.names.iter().map(String::as_str).collect();
        assert_eq!((names[0], names[1], names[2], names[10]), ("voltage", "resistance", "noise_3", "label"));
        let table = problem.table(0);
        assert!((0..50).all(|row| table[10][row] == table[0][row] / table[1][row]));
        assert!(table[..10].iter().flatten().all(|x| (10.0..20.0).contains(x)));
    }

    /// Features of the artificial problem correlate by a half.
    #[test]
    fn artificial_features_correlate() {
        let table = problem("artificial", 20_000, r#"{"columns": 6}"#).unwrap().table(0);
        let moment = |i: usize, j: usize| table[i].iter().zip(&table[j]).map(|(a, b)| a * b).sum::<f64>() / 20_000.0;
        assert!((moment(0, 5) / moment(0, 0) - 0.5).abs() < 0.02 && (moment(0, 0) - 0.5).abs() < 0.02);
    }

    #[test]
    fn pieces_are_small_and_make_the_table() {
        let long = problem("linear", 20_000, "{}").unwrap();
        assert_eq!(long.pieces(0).map(|piece| piece[0].len()).collect::<Vec<_>>(), [8192, 8192, 3616]);
        let wide = problem("linear", 30, r#"{"columns": 99999}"#).unwrap();
        assert_eq!(wide.pieces(0).map(|piece| piece[0].len()).collect::<Vec<_>>(), [10, 10, 10]);
        assert_eq!(wide.table(0)[99_999].len(), 30);
    }

    #[test]
    fn runs_are_tables_of_their_own() {
        let problem = problem("linear", 5, r#"{"runs": 2}"#).unwrap();
        assert_eq!(problem.table(0), problem.table(0));
        assert_ne!(problem.table(0), problem.table(1));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |name, rows, json| problem(name, rows, json).unwrap_err().to_string();
        assert!(message("omh", 5, "{}").starts_with("no problem named `omh`; did you mean `ohm`? problems are ohm, planck"));
        assert_eq!(
            message("gravitation", 5, r#"{"columns": 2}"#),
            "`columns` must be at least 3, which carry the label of gravitation; got 2"
        );
        assert_eq!(
            message("linear", 10, r#"{"support": 10000000000}"#),
            "`support` must be between 1 and 100000, got 10000000000"
        );
        assert_eq!(message("ohm", 0, "{}"), "rows must be at least 1, got 0");
        assert_eq!(message("interaction", 5, r#"{"support": 3}"#), "`support` must be an even number for interaction, got 3");
        assert_eq!(
            message("ohm", 5, r#"{"support": 3}"#),
            "`support` is for 'linear' or 'interaction', and ohm has its own; got 3"
        );
    }
}
