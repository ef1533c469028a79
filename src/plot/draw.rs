//! Draws pictures with kuva, which nothing else here knows.
//!
//! Chosen over plotters because one description is drawn on the terminal, as SVG and as PNG, with margins that fit the names. It is young, so it is pinned, and a
//! picture is described in words of our own (`picture.rs`), which another library could draw as well.

use std::sync::Arc;

use kuva::prelude::*;

use super::picture::{Chart, Line, Picture, Scale, are_far_apart, colour};

/// For a page that is white, or one that is black.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    Light,
    Dark,
}

pub fn svg(picture: &Picture, look: Look) -> String {
    SvgBackend::new().render_scene(&scene(picture, theme(look), None))
}

#[cfg(feature = "png")]
pub fn png(picture: &Picture) -> Result<Vec<u8>, String> {
    PngBackend::new().render_scene(&scene(picture, theme(Look::Light), None)).map_err(|error| error.to_string())
}

/// Text for a terminal of so many columns. Letters have the terminal's own colour; without `color` all of it has.
pub fn text(picture: &Picture, columns: usize, color: bool) -> String {
    let mut theme = Theme::light();
    for part in [&mut theme.text_color, &mut theme.axis_color, &mut theme.tick_color, &mut theme.grid_color] {
        *part = INK.to_string();
    }
    theme.show_grid = false;
    let scene = scene(picture, theme, Some(columns));
    // A line of letters is as high as a name needs.
    let rows = (scene.height / LETTER.1).ceil() as usize;
    let drawn = TerminalBackend::new(columns, rows).render_scene(&scene);
    let drawn = drawn.replace("\x1b[38;2;119;119;119m", "\x1b[39m");
    let drawn = if color { drawn } else { without_colours(&drawn) };
    let lines: Vec<&str> = drawn.lines().map(str::trim_end).collect();
    let is_blank = |line: &&str| without_colours(line).trim().is_empty();
    let begin = lines.iter().position(|line| !is_blank(line)).unwrap_or(0);
    let end = lines.iter().rposition(|line| !is_blank(line)).map_or(0, |end| end + 1);
    let reset = if color { "\x1b[0m" } else { "" };
    lines[begin..end.max(begin)].iter().map(|line| format!("{line}{reset}\n")).collect()
}

const INK: &str = "#777777";
/// Width and height of a letter on the terminal, in the units of a picture.
const LETTER: (f64, f64) = (9.0, 20.0);
const SLOT: f64 = 20.0;

fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn theme(look: Look) -> Theme {
    match look {
        Look::Light => Theme { show_grid: true, ..Theme::light() },
        Look::Dark => Theme { show_grid: true, ..Theme::dark() },
    }
}

fn scene(picture: &Picture, theme: Theme, room: Option<usize>) -> kuva::render::render::Scene {
    let plots = plots(&picture.chart, room.is_some());
    let (width, height) = size(&picture.chart, room);
    let mut layout = Layout::auto_from_plots(&plots).with_title(&picture.title).with_theme(theme);
    layout = layout.with_width(width).with_height(height).with_tick_size(TICK).with_title_size(16);
    layout = match &picture.chart {
        Chart::Bars { value, .. } => layout.with_x_label(value),
        Chart::Lines { x, y, lines } => {
            let layout = whole_steps(layout.with_x_label(x).with_y_label(y), lines);
            if lines.len() > 1 { layout.with_legend_position(LegendPosition::OutsideRightTop) } else { layout }
        }
        Chart::Points { x, y, points } => {
            let layout = layout.with_x_label(x).with_y_label(y);
            let layout = layout.with_legend_position(LegendPosition::OutsideRightTop);
            let layout = if x == "seconds" { layout.with_x_tick_format(TickFormat::Custom(Arc::new(time))) } else { layout };
            if are_far_apart(points) { layout.with_log_x() } else { layout }
        }
        Chart::Grid { rows, columns, .. } => {
            let is_long = columns.iter().any(|name| name.len() > 4);
            // A terminal has no letters that stand on their side.
            let names = if is_long && room.is_some() { vec![String::new(); columns.len()] } else { columns.clone() };
            let layout = layout.with_show_grid(false).with_x_categories(names);
            let layout = layout.with_y_categories(rows.iter().rev().cloned().collect());
            if is_long { layout.with_x_tick_rotate(-90.0) } else { layout }
        }
        Chart::Image { values, .. } => {
            let columns = values.first().map_or(0, Vec::len);
            let rows = numbered(values.len()).into_iter().rev().collect();
            layout.with_show_grid(false).with_equal_aspect().with_x_categories(numbered(columns)).with_y_categories(rows)
        }
    };
    if room.is_some() {
        // What fills the box would be letters of a terminal.
        layout = layout.with_legend_box(false).with_term_rows((height / LETTER.1).ceil() as u32);
        let letters = match &picture.chart {
            Chart::Lines { lines, .. } if lines.len() > 1 => lines.iter().map(|line| line.name.chars().count()).max(),
            Chart::Points { points, .. } => points.iter().map(|(name, ..)| name.chars().count() + 3).max(),
            _ => None,
        };
        if let Some(letters) = letters {
            layout = layout.with_legend_width((letters + 4) as f64 * LETTER.0);
        }
        layout = layout.with_force_margins_y(2.0 * LETTER.1, 3.0 * LETTER.1);
        if let Chart::Bars { names, .. } | Chart::Grid { rows: names, .. } = &picture.chart {
            let letters = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            layout = layout.with_force_margins((letters + 3) as f64 * LETTER.0, 14.0 * LETTER.0);
        }
    }
    render_multiple(plots, layout)
}

/// Ranks and steps are counted: there is none between two of them.
fn whole_steps(layout: Layout, lines: &[Line]) -> Layout {
    let places = || lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let (low, high) = bounds(places());
    // The library's own steps are whole where there are many.
    if places().all(|x| x.fract() == 0.0) && high - low <= 10.0 { layout.with_x_tick_step(1.0) } else { layout }
}

/// Seconds as people say them: `20 µs`.
fn time(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= 0.999 * unit).unwrap_or((1e-9, "ns"));
    format!("{} {name}", (1e3 * seconds / unit).round() / 1e3)
}

/// The first, and every so many.
fn numbered(count: usize) -> Vec<String> {
    let every = count.div_ceil(8).max(1);
    (0..count).map(|at| if at % every == 0 { (at + 1).to_string() } else { String::new() }).collect()
}

const TICK: u32 = 12;

/// Wide and high enough that no name runs into another.
fn size(chart: &Chart, columns: Option<usize>) -> (f64, f64) {
    let letters = |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
    let room = columns.map(|columns| columns as f64 * LETTER.0);
    match chart {
        Chart::Bars { names, series, .. } => {
            let bars = if series.len() > 1 && columns.is_none() { 0.4 + 0.6 * series.len() as f64 } else { 1.0 };
            let frame = if columns.is_some() { 5.0 * LETTER.1 } else { 120.0 };
            (room.unwrap_or(360.0 + 7.5 * letters(names)), frame + SLOT * names.len() as f64 * bars)
        }
        Chart::Lines { .. } | Chart::Points { .. } => (room.unwrap_or(720.0), 420.0),
        Chart::Grid { rows, columns: names, .. } => {
            let width = 140.0 + 7.5 * letters(rows) + SLOT * names.len() as f64;
            let frame = if columns.is_some() { 5.0 * LETTER.1 } else { 130.0 + 7.5 * letters(names) };
            (room.unwrap_or(width.max(360.0)), frame + SLOT * rows.len() as f64)
        }
        Chart::Image { .. } => (room.map_or(460.0, |room| room.min(720.0)), 420.0),
    }
}

fn plots(chart: &Chart, is_text: bool) -> Vec<Plot> {
    match chart {
        Chart::Bars { names, series, .. } => {
            let mut bars = BarPlot::new().with_horizontal(true).with_gap(0.3).with_tooltips();
            // The first name is on top.
            for (at, name) in names.iter().enumerate().rev() {
                let of = |(nth, bars): (usize, &super::picture::Bars)| (bars.values[at].unwrap_or(0.0), colour(nth));
                bars = bars.with_group(name.clone(), series.iter().enumerate().map(of));
            }
            if series.iter().any(|bars| !bars.errors.is_empty()) {
                let of = |at: usize| series.iter().map(move |bars| bars.errors.get(at).copied().unwrap_or(0.0));
                bars = bars.with_error((0..names.len()).rev().flat_map(of)).with_error_color("#777777");
            }
            if series.len() > 1 {
                bars = bars.with_legend(series.iter().map(|bars| bars.name.as_str()).collect());
            }
            vec![bars.into()]
        }
        Chart::Lines { lines, .. } => {
            lines.iter().enumerate().flat_map(|(at, line)| drawn_line(line, at, lines.len(), is_text)).collect()
        }
        Chart::Points { points, .. } => {
            let scatter = || ScatterPlot::new().with_color(colour(0)).with_size(5.0);
            // Names beside points would run into each other; numbers do not, and the legend has their names.
            let named = |(at, (name, x, y)): (usize, &(String, f64, f64))| -> Plot {
                scatter().with_data([(*x, *y)]).with_legend(format!("{} {name}", at + 1)).into()
            };
            let numbers = scatter().with_data(points.iter().map(|(_, x, y)| (*x, *y))).with_labels(numbers(points));
            points.iter().enumerate().map(named).chain([numbers.with_repel_labels().into()]).collect()
        }
        Chart::Grid { rows, columns, values, value, scale } => {
            let number = |x: &Option<f64>| x.unwrap_or(f64::NAN);
            // The first row is on top.
            let cells = values.iter().rev().map(|row| row.iter().map(number).collect::<Vec<f64>>());
            let names = rows.iter().rev().cloned().collect();
            let grid = Heatmap::new().with_data(cells).with_labels(names, columns.clone()).with_legend(value);
            let (low, high) = bounds(values.iter().flatten().flatten().copied());
            vec![grid.with_color_map(colours(*scale, low, high)).with_tooltips().into()]
        }
        Chart::Image { values, value } => {
            let rows = values.iter().rev().cloned();
            vec![Heatmap::new().with_data(rows).with_color_map(colours(Scale::Amount, 0.0, 1.0)).with_legend(value).into()]
        }
    }
}

/// The number of each point. Points that are nearly in one place have one label, with the numbers of all of them.
fn numbers(points: &[(String, f64, f64)]) -> Vec<String> {
    let is_log = are_far_apart(points);
    let places: Vec<(f64, f64)> = points.iter().map(|(_, x, y)| (if is_log { x.ln() } else { *x }, *y)).collect();
    let reach = |(low, high): (f64, f64)| (high - low).max(f64::MIN_POSITIVE);
    let (width, height) = (reach(bounds(places.iter().map(|at| at.0))), reach(bounds(places.iter().map(|at| at.1))));
    let is_near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 0.04 * width && (a.1 - b.1).abs() < 0.04 * height;
    let mut labels = vec![String::new(); points.len()];
    for at in 0..points.len() {
        match (0..at).find(|other| !labels[*other].is_empty() && is_near(places[*other], places[at])) {
            Some(other) => labels[other] = format!("{}, {}", labels[other], at + 1),
            None => labels[at] = (at + 1).to_string(),
        }
    }
    labels
}

/// The library gives the least value the first colour and the most the last; the middle of a correlation is 0, whatever there is. What has no value
/// has no colour either.
fn colours(scale: Scale, low: f64, high: f64) -> ColorMap {
    ColorMap::Custom(Arc::new(move |share| match scale {
        _ if share.is_nan() => "none".to_string(),
        Scale::Amount => ColorMap::Cividis.map(share),
        Scale::Correlation => ColorMap::RedBlue.map(((low + share * (high - low) + 1.0) / 2.0).clamp(0.0, 1.0)),
    }))
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

fn drawn_line(line: &Line, at: usize, lines: usize, is_text: bool) -> Vec<Plot> {
    let mut drawn = LinePlot::new().with_data(line.points.iter().copied()).with_color(colour(at)).with_stroke_width(2.0);
    let mut edges: Vec<Plot> = Vec::new();
    if !line.band.is_empty() {
        let edge = |sign: f64| line.points.iter().zip(&line.band).map(move |((_, y), reach)| y + sign * reach);
        // A band of letters would hide the line in it, so that only its edges are drawn.
        if is_text {
            let across = line.points.iter().map(|(x, _)| *x);
            let edge = |sign: f64| LinePlot::new().with_data(across.clone().zip(edge(sign))).with_color(INK).into();
            edges = vec![edge(-1.0), edge(1.0)];
        } else {
            drawn = drawn.with_band(edge(-1.0), edge(1.0));
        }
    }
    // Beyond seven colours the form of the line tells.
    drawn = match at / super::picture::COLOURS.len() % 3 {
        1 => drawn.with_dashed(),
        2 => drawn.with_dotted(),
        _ => drawn,
    };
    if lines > 1 {
        drawn = drawn.with_legend(line.name.clone());
    }
    let dots = ScatterPlot::new().with_data(line.points.iter().copied()).with_color(colour(at)).with_size(3.0);
    edges.into_iter().chain([drawn.into(), dots.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_one_place_have_one_label() {
        let point = |name: &str, x: f64, y: f64| (name.to_string(), x, y);
        let points = [point("a", 1e-5, 0.5), point("b", 1.2e-5, 0.5), point("c", 1e-5, 0.3), point("d", 1.0, 0.5)];
        assert_eq!(numbers(&points), ["1, 2", "", "3", "4"]);
    }

    /// What has no value is not drawn as if it had the least.
    #[test]
    fn no_value_has_no_colour() {
        for scale in [Scale::Amount, Scale::Correlation] {
            assert_eq!(colours(scale, 0.0, 1.0).map(f64::NAN), "none");
            assert!(colours(scale, 0.0, 1.0).map(0.0).starts_with(['#', 'r']));
        }
    }
}
