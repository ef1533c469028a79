//! The classes of a model as values of a label, and whether a prediction is a row's label.
//!
//! A model knows its classes by name: a text by itself, a boolean as `true` or `false`, and whatever is a number at heart (decimals, dates and times, too) by that
//! number. Here the names become values of the label's type again, and labels are compared as they were when they were learnt.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use pursuit_udfs::{Error, NO_LEVEL};
use std::sync::Arc;

use crate::columns::{ColumnKind, kind, levels, numbers};

/// The type that predictions of a label have: that of its values, or text where there is none.
pub(crate) fn predicted_type(label: Option<&DataType>) -> DataType {
    match label {
        Some(DataType::RunEndEncoded(_, values)) => predicted_type(Some(values.data_type())),
        Some(label) if *label != DataType::Null && kind(label) != ColumnKind::Other => label.clone(),
        _ => DataType::Utf8,
    }
}

/// The classes of a model, by name, as numbers where they are some, and as values of the label.
pub(crate) struct Classes {
    names: Vec<String>,
    /// NaN: no number.
    numbers: Vec<f64>,
    pub values: ArrayRef,
}

impl Classes {
    /// `data_type` is that of the label.
    pub(crate) fn new(names: Vec<String>, data_type: &DataType) -> Result<Self> {
        let numbers: Vec<f64> = names.iter().map(|name| number(name)).collect();
        let values = values(&names, &numbers, data_type)?;
        Ok(Self { names, numbers, values })
    }

    /// An error if there is no such value of the label: the model was learnt from another.
    pub(crate) fn check(&self, model: &str) -> pursuit_udfs::Result<()> {
        match (0..self.names.len()).find(|class| self.values.is_null(*class)) {
            Some(class) => Err(Error::data(format!(
                "the {model} predicts `{}`, which is no {}; give the label the type that it was learnt with",
                self.names[class],
                self.values.data_type()
            ))),
            None => Ok(()),
        }
    }

    /// Whether each prediction is the label; NULL where one is missing.
    pub(crate) fn correct(&self, label: &ArrayRef, predicted: &[u32]) -> Result<BooleanArray> {
        if matches!(kind(label.data_type()), ColumnKind::Text | ColumnKind::Boolean) {
            let (codes, names) = levels(label)?;
            let is_class: Vec<Vec<bool>> =
                names.iter().map(|name| (0..self.names.len()).map(|class| self.is_named(class, name)).collect()).collect();
            let is_same = |(code, class): (&u32, &u32)| {
                is_class.get(*code as usize).filter(|_| *class != NO_LEVEL).map(|is_class| is_class[*class as usize])
            };
            return Ok(codes.iter().zip(predicted).map(is_same).collect());
        }
        let mut values = vec![0.0; label.len()];
        numbers(label)?.fill(0, &mut values);
        let is_same = |(value, class): (&f64, &u32)| {
            // NaN and numbers beyond all sense are no labels, there as here.
            (value.abs() <= 1e100 && *class != NO_LEVEL).then(|| self.numbers[*class as usize] == *value)
        };
        Ok(values.iter().zip(predicted).map(is_same).collect())
    }

    /// Whether a class is called so. Texts are compared letter by letter where classes are texts, and as numbers where they are numbers.
    fn is_named(&self, class: usize, name: &str) -> bool {
        self.names[class] == name || (kind(self.values.data_type()) != ColumnKind::Text && self.numbers[class] == number(name))
    }
}

/// The number that a name stands for; NaN: none.
fn number(name: &str) -> f64 {
    match name {
        "true" => 1.0,
        "false" => 0.0,
        _ => name.parse().unwrap_or(f64::NAN),
    }
}

/// Names as values of a type; NULL where there is none.
fn values(names: &[String], numbers: &[f64], data_type: &DataType) -> Result<ArrayRef> {
    use DataType::*;
    Ok(match (data_type, kind(data_type)) {
        (Dictionary(_, plain), _) => cast(&values(names, numbers, plain)?, data_type)?,
        (_, ColumnKind::Number | ColumnKind::Integer) => {
            // `true` is no number, though it is compared as one.
            let number = |(name, number): (&String, &f64)| name.parse::<f64>().ok().map(|_| *number);
            let numbers: ArrayRef = Arc::new(names.iter().zip(numbers).map(number).collect::<Float64Array>());
            // As they were read: dates and times are whole numbers of their unit.
            let whole = match data_type {
                Date32 | Time32(_) => Some(Int32),
                Date64 | Time64(_) | Timestamp(..) | Duration(_) => Some(Int64),
                _ => None,
            };
            let numbers = whole.map_or(Ok(Arc::clone(&numbers)), |whole| cast(&numbers, &whole))?;
            cast(&numbers, data_type)?
        }
        _ => cast(&(Arc::new(StringArray::from_iter_values(names)) as ArrayRef), data_type)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::TimeUnit;

    /// The names that the values of a label have as classes, as reading makes them.
    fn read(label: &ArrayRef) -> Vec<String> {
        if matches!(kind(label.data_type()), ColumnKind::Text | ColumnKind::Boolean) {
            let (codes, names) = levels(label).unwrap();
            return codes.iter().map(|code| names[*code as usize].clone()).collect();
        }
        let mut values = vec![0.0; label.len()];
        numbers(label).unwrap().fill(0, &mut values);
        values.iter().map(f64::to_string).collect()
    }

    /// Every type of label: what is learnt is predicted, and a right prediction is told from a wrong one.
    #[test]
    fn classes_are_values_of_every_type_of_label() {
        use DataType::*;
        let days: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 20_000]));
        let types = [
            Int8,
            Int32,
            Int64,
            UInt64,
            Float16,
            Float32,
            Float64,
            Decimal128(10, 2),
            Decimal256(40, 3),
            Date32,
            Date64,
            Time32(TimeUnit::Second),
            Time64(TimeUnit::Microsecond),
            Timestamp(TimeUnit::Second, None),
            Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())),
            Duration(TimeUnit::Millisecond),
            Utf8,
            LargeUtf8,
            Utf8View,
            Dictionary(Box::new(Int8), Box::new(Utf8)),
            Dictionary(Box::new(Int32), Box::new(Int64)),
            Boolean,
        ];
        for data_type in types {
            let small = matches!(data_type, Int8 | Boolean | Float16);
            let days = if small { days.slice(0, 2) } else { days.slice(0, 3) };
            let days = match &data_type {
                Date32 | Time32(_) => cast(&days, &Int32).unwrap(),
                Dictionary(_, plain) => cast(&days, plain).unwrap(),
                _ => days,
            };
            let label = cast(&days, &data_type).unwrap();
            let classes = Classes::new(read(&label), &predicted_type(Some(&data_type))).unwrap();
            classes.check("model").unwrap();
            assert_eq!(&cast(&classes.values, &Utf8).unwrap(), &cast(&label, &Utf8).unwrap(), "{data_type}");
            let right: Vec<u32> = (0..label.len() as u32).collect();
            let wrong: Vec<u32> = right.iter().rev().copied().collect();
            assert_eq!(classes.correct(&label, &right).unwrap().true_count(), label.len(), "{data_type}");
            assert_eq!(classes.correct(&label, &wrong).unwrap().true_count(), label.len() % 2, "{data_type}");
        }
    }

    #[test]
    fn labels_are_compared_as_what_they_are() {
        let texts = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
        let correct = |classes: &Classes, label: &ArrayRef, predicted: &[u32]| {
            classes.correct(label, predicted).unwrap().iter().collect::<Vec<_>>()
        };
        // As texts '1' and '1.0' are two classes; as numbers they are one.
        let of_texts = Classes::new(vec!["1".into(), "1.0".into()], &DataType::Utf8).unwrap();
        assert_eq!(correct(&of_texts, &texts(&["1", "1.0", "1.0"]), &[0, 1, 0]), [Some(true), Some(true), Some(false)]);
        let of_numbers = Classes::new(vec!["1".into(), "2".into()], &DataType::Int64).unwrap();
        assert_eq!(correct(&of_numbers, &texts(&["1.0", "2", "x"]), &[0, 1, 0]), [Some(true), Some(true), Some(false)]);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(2.0), None, Some(f64::NAN)]));
        assert_eq!(correct(&of_numbers, &floats, &[0, 0, 0, 1]), [Some(true), Some(false), None, None]);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
        assert_eq!(correct(&of_numbers, &flags, &[0, 0, 0]), [Some(true), Some(false), None]);
        let of_flags = Classes::new(vec!["false".into(), "true".into()], &DataType::Boolean).unwrap();
        assert_eq!(correct(&of_flags, &floats.slice(0, 1), &[1]), [Some(true)]);
        // A class that the label's type does not have is said.
        let message = Classes::new(vec!["setosa".into()], &DataType::Int64).unwrap().check("policy").unwrap_err().to_string();
        assert_eq!(message, "the policy predicts `setosa`, which is no Int64; give the label the type that it was learnt with");
    }
}
