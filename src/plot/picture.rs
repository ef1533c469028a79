//! What a picture shows, said without a library: whoever draws needs nothing else.

/// A picture of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub title: String,
    pub chart: Chart,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// A bar for each name, or one for each name and series; the first name on top.
    Bars { names: Vec<String>, series: Vec<Bars>, value: String },
    /// Lines over a common axis, each with a band if its uncertainty is known.
    Lines { x: String, y: String, lines: Vec<Line> },
    /// Points with a name.
    Points { x: String, y: String, points: Vec<(String, f64, f64)> },
    /// A colour for each pair of names; `None`: there is no value.
    Grid { rows: Vec<String>, columns: Vec<String>, values: Vec<Vec<Option<f64>>>, value: String, scale: Scale },
    /// A colour for each pixel, row by row.
    Image { values: Vec<Vec<f64>>, value: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub name: String,
    pub values: Vec<Option<f64>>,
    /// Half of what is drawn as uncertain; empty if not known.
    pub errors: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// How far the band reaches up and down; empty if not known.
    pub band: Vec<f64>,
}

/// What the colours of a grid stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From the least to the most.
    Amount,
    /// From -1 over 0 to 1.
    Correlation,
}

/// Colours that people tell apart who do not see some (Okabe and Ito), dark enough for white and light enough for black.
pub(super) const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A00"];

#[cfg(feature = "plot")]
pub(super) fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// Whether points are so far apart from left to right that most would stand in one place: then each step of the axis is ten times the one before.
pub(super) fn are_far_apart(points: &[(String, f64, f64)]) -> bool {
    let (least, most) = points.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), (_, x, _)| (least.min(*x), most.max(*x)));
    least > 0.0 && most / least > 50.0
}
