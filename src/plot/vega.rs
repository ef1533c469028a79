//! A picture as a Vega-Lite specification, which notebooks and dashboards draw and restyle. The values are in it.

use serde_json::{Value, json};

use super::picture::{COLOURS, Chart, Picture, Scale, are_far_apart};

pub fn spec(picture: &Picture) -> Value {
    let (values, encoding, mark) = match &picture.chart {
        Chart::Bars { names, series, value } => {
            let mut rows = Vec::new();
            for bars in series {
                for (at, name) in names.iter().enumerate() {
                    let error = bars.errors.get(at);
                    rows.push(json!({"name": name, "series": bars.name, "value": bars.values[at], "error": error}));
                }
            }
            let mut encoding = json!({
                "y": {"field": "name", "type": "nominal", "sort": names, "title": null},
                "x": {"field": "value", "type": "quantitative", "title": value},
            });
            if series.len() > 1 {
                encoding["yOffset"] = json!({"field": "series"});
                encoding["color"] = colour("series");
            }
            (rows, encoding, json!({"type": "bar", "tooltip": true}))
        }
        Chart::Lines { x, y, lines } => {
            let mut rows = Vec::new();
            for line in lines {
                for (at, (x, y)) in line.points.iter().enumerate() {
                    let reach = line.band.get(at);
                    let edges = reach.map(|reach| (y - reach, y + reach));
                    rows.push(
                        json!({"series": line.name, "x": x, "y": y, "low": edges.map(|e| e.0), "high": edges.map(|e| e.1)}),
                    );
                }
            }
            let mut encoding = json!({
                "x": {"field": "x", "type": "quantitative", "title": x},
                "y": {"field": "y", "type": "quantitative", "title": y},
            });
            if lines.len() > 1 {
                encoding["color"] = colour("series");
            }
            (rows, encoding, json!({"type": "line", "point": true, "tooltip": true}))
        }
        Chart::Points { x, y, points } => {
            let rows = points.iter().map(|(name, x, y)| json!({"name": name, "x": x, "y": y})).collect();
            let scale = if are_far_apart(points) { "log" } else { "linear" };
            let encoding = json!({
                "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"type": scale}},
                "y": {"field": "y", "type": "quantitative", "title": y},
                "tooltip": [{"field": "name"}, {"field": "x"}, {"field": "y"}],
            });
            (rows, encoding, json!({"type": "point", "filled": true}))
        }
        Chart::Grid { rows, columns, values, value, scale } => {
            let cell =
                |row: usize, column: usize| json!({"row": rows[row], "column": columns[column], "value": values[row][column]});
            let cells = (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| cell(row, column))).collect();
            let scale = match scale {
                Scale::Correlation => json!({"scheme": "redblue", "domain": [-1, 1]}),
                Scale::Amount => json!({"scheme": "cividis"}),
            };
            let encoding = json!({
                "y": {"field": "row", "type": "nominal", "sort": rows, "title": null},
                "x": {"field": "column", "type": "nominal", "sort": columns, "title": null},
                "color": {"field": "value", "type": "quantitative", "title": value, "scale": scale},
            });
            (cells, encoding, json!({"type": "rect", "tooltip": true}))
        }
        Chart::Image { values, value } => {
            let cell = |(row, line): (usize, &Vec<f64>)| {
                line.iter()
                    .enumerate()
                    .map(move |(column, x)| json!({"row": row, "column": column, "value": x}))
                    .collect::<Vec<_>>()
            };
            let encoding = json!({
                "y": {"field": "row", "type": "ordinal"},
                "x": {"field": "column", "type": "ordinal"},
                "color": {"field": "value", "type": "quantitative", "title": value, "scale": {"scheme": "cividis"}},
            });
            (values.iter().enumerate().flat_map(cell).collect(), encoding, json!({"type": "rect", "tooltip": true}))
        }
    };
    let mut spec = json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": picture.title,
        "data": {"values": values},
    });
    match band(&picture.chart) {
        None if matches!(picture.chart, Chart::Points { .. }) => {
            let mut named = encoding.clone();
            named["text"] = json!({"field": "name"});
            let names = json!({"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": named});
            spec["layer"] = json!([{"mark": mark, "encoding": encoding}, names]);
        }
        // What is uncertain lies under what is not.
        Some((low, high, mark_of_band)) => {
            let axis = if matches!(picture.chart, Chart::Bars { .. }) { "x" } else { "y" };
            let mut under = encoding.clone();
            under[axis] = low;
            under[format!("{axis}2")] = high;
            let order =
                if axis == "x" { [(mark, encoding), (mark_of_band, under)] } else { [(mark_of_band, under), (mark, encoding)] };
            spec["layer"] = order.into_iter().map(|(mark, encoding)| json!({"mark": mark, "encoding": encoding})).collect();
            if axis == "x" {
                spec["transform"] = json!([
                    {"calculate": "datum.value - datum.error", "as": "low"},
                    {"calculate": "datum.value + datum.error", "as": "high"},
                ]);
            }
        }
        None => {
            spec["mark"] = mark;
            spec["encoding"] = encoding;
        }
    }
    spec
}

/// Where the uncertainty of a chart begins and ends, and how it is drawn.
fn band(chart: &Chart) -> Option<(Value, Value, Value)> {
    let mark = match chart {
        Chart::Bars { series, .. } if series.iter().any(|bars| !bars.errors.is_empty()) => json!({"type": "rule"}),
        Chart::Lines { lines, .. } if lines.iter().any(|line| !line.band.is_empty()) => json!({"type": "area", "opacity": 0.2}),
        _ => return None,
    };
    let title = match chart {
        Chart::Bars { value, .. } => value,
        Chart::Lines { y, .. } => y,
        _ => return None,
    };
    Some((json!({"field": "low", "type": "quantitative", "title": title}), json!({"field": "high"}), mark))
}

fn colour(field: &str) -> Value {
    json!({"field": field, "type": "nominal", "title": null, "scale": {"range": COLOURS}})
}
