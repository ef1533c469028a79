//! Pictures of answers. What is drawn follows from the columns of an answer, so that a plugin's is drawn as ours are.

#[cfg(feature = "plot")]
mod draw;
mod picture;
mod recognise;
mod vega;

use std::path::Path;

pub use picture::{Bars, Chart, Line, Picture, Scale};
pub use recognise::{Kind, Wish, picture};

/// Draws a picture into a file, in the form that its ending names.
pub fn save(picture: &Picture, file: &Path) -> Result<(), String> {
    let name = file.to_string_lossy().to_lowercase();
    let bytes = match () {
        () if name.ends_with(".vl.json") => format!("{:#}\n", vega::spec(picture)).into_bytes(),
        () if name.ends_with(".svg") => svg(picture)?.into_bytes(),
        () if name.ends_with(".html") => page(picture)?.into_bytes(),
        () if name.ends_with(".png") => png(picture)?,
        () => return Err(format!("cannot draw `{}`; end it in .svg, .png, .html or .vl.json", file.display())),
    };
    std::fs::write(file, bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// A picture for a terminal of so many columns.
#[cfg(feature = "plot")]
pub fn text(picture: &Picture, columns: usize, color: bool) -> Result<String, String> {
    Ok(draw::text(picture, columns, color))
}

#[cfg(feature = "plot")]
fn svg(picture: &Picture) -> Result<String, String> {
    Ok(draw::svg(picture, draw::Look::Light))
}

/// A page that asks nobody for anything, in the reader's own light.
#[cfg(feature = "plot")]
fn page(picture: &Picture) -> Result<String, String> {
    let title = picture.title.replace('&', "&amp;").replace('<', "&lt;");
    let (light, dark) = (draw::svg(picture, draw::Look::Light), draw::svg(picture, draw::Look::Dark));
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n\
         body {{ margin: 1rem; background: #fff; color: #111 }}\nsvg {{ max-width: 100%; height: auto }}\n.dark {{ display: none }}\n\
         @media (prefers-color-scheme: dark) {{ body {{ background: #1e1e1e; color: #eee }} .dark {{ display: block }} .light {{ display: none }} }}\n\
         </style>\n</head>\n<body>\n<div class=\"light\">{light}</div>\n<div class=\"dark\">{dark}</div>\n</body>\n</html>\n"
    ))
}

#[cfg(feature = "png")]
fn png(picture: &Picture) -> Result<Vec<u8>, String> {
    draw::png(picture)
}

#[cfg(not(feature = "png"))]
fn png(_: &Picture) -> Result<Vec<u8>, String> {
    Err("this build draws no png; build it with --features png, or write .svg or .html".to_string())
}

#[cfg(not(feature = "plot"))]
mod without {
    use super::Picture;

    fn refused() -> Result<String, String> {
        Err("this build draws no pictures; build it with the feature plot, or write .vl.json".to_string())
    }

    pub fn text(_: &Picture, _: usize, _: bool) -> Result<String, String> {
        refused()
    }

    pub(super) fn svg(_: &Picture) -> Result<String, String> {
        refused()
    }

    pub(super) fn page(_: &Picture) -> Result<String, String> {
        refused()
    }
}

#[cfg(not(feature = "plot"))]
pub use without::text;
#[cfg(not(feature = "plot"))]
use without::{page, svg};
