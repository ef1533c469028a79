//! The pixels of an image as windows that are chosen whole.

use std::collections::BTreeMap;

use crate::{Error, Result};

/// Groups the columns, which are an image's pixels row by row, into windows beside each other. What is left over at the right and at the bottom
/// forms smaller ones, so that every pixel is in a window.
pub(crate) fn windows(image: &[usize], window: &[usize], features: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let (height, width) = match (image, window) {
        ([], []) => return Ok(BTreeMap::new()),
        ([], _) => return Err(Error::call("`window` needs `image`: the rows and columns of the image, such as [28, 28]")),
        (_, []) => return Err(Error::call("`image` needs `window`: the rows and columns of a window, such as [4, 4]")),
        ([height, width], [_, _]) => (*height, *width),
        ([_, _], _) => return Err(Error::call(two_numbers("window", window))),
        _ => return Err(Error::call(two_numbers("image", image))),
    };
    let (rows, columns) = (window[0], window[1]);
    if rows > height || columns > width {
        return Err(Error::call(format!(
            "`window` must fit into the image of {height} × {width} pixels, got {rows} × {columns}"
        )));
    }
    check_pixels(height, width, features.len())?;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (at, name) in features.iter().enumerate() {
        let window = format!("window_{}_{}", at / width / rows, at % width / columns);
        groups.entry(window).or_default().push(name.clone());
    }
    Ok(groups)
}

/// Every pixel must be a column.
pub(crate) fn check_pixels(height: usize, width: usize, features: usize) -> Result<()> {
    // Twice as wide as the numbers themselves: no product is too large.
    let pixels = height as u128 * width as u128;
    if features as u128 == pixels {
        return Ok(());
    }
    Err(Error::call(format!(
        "`image` of {height} × {width} needs {pixels} pixel columns, and there are {features} features; pick them with `features` or `exclude`"
    )))
}

pub(crate) fn two_numbers(option: &str, got: &[usize]) -> String {
    let got: Vec<String> = got.iter().map(usize::to_string).collect();
    format!("`{option}` must be two numbers, rows and columns, got [{}]", got.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(n: usize) -> Vec<String> {
        (0..n).map(|at| format!("p{at}")).collect()
    }

    #[test]
    fn pixels_are_in_the_window_where_they_stand() {
        let groups = windows(&[4, 5], &[2, 2], &pixels(20)).unwrap();
        assert_eq!(groups.len(), 6);
        assert_eq!(groups["window_0_0"], ["p0", "p1", "p5", "p6"]);
        assert_eq!(groups["window_1_2"], ["p14", "p19"], "what is left over");
    }

    #[test]
    fn mistakes_name_the_numbers() {
        let message = |image: &[usize], window: &[usize], n| windows(image, window, &pixels(n)).unwrap_err().to_string();
        assert_eq!(message(&[4, 4], &[5, 2], 16), "`window` must fit into the image of 4 × 4 pixels, got 5 × 2");
        assert_eq!(
            message(&[4, 4], &[2, 2], 15),
            "`image` of 4 × 4 needs 16 pixel columns, and there are 15 features; pick them with `features` or `exclude`"
        );
        assert_eq!(message(&[4], &[2, 2], 16), "`image` must be two numbers, rows and columns, got [4]");
        assert!(message(&[], &[2, 2], 16).starts_with("`window` needs `image`"));
        // 2³² × 2³² pixels are more than a number of the machine's size can count.
        let huge = message(&[1 << 32, 1 << 32], &[1, 1], 16);
        assert!(huge.starts_with("`image` of 4294967296 × 4294967296 needs 18446744073709551616 pixel columns"), "{huge}");
    }
}
