//! Arrow columns as the numbers and levels that selectors see.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::*;
use datafusion::error::Result;
use pursuit_udfs::{Block, NO_LEVEL, Numbers, Plan};

/// What a column of a type can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Number,
    Integer,
    Boolean,
    Text,
    /// Lists, structs, binary: not a feature.
    Other,
}

pub(crate) fn kind(data_type: &DataType) -> ColumnKind {
    use DataType::*;
    match data_type {
        Boolean => ColumnKind::Boolean,
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => ColumnKind::Integer,
        Null | Float16 | Float32 | Float64 => ColumnKind::Number,
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => ColumnKind::Number,
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => ColumnKind::Number,
        Utf8 | LargeUtf8 | Utf8View => ColumnKind::Text,
        Dictionary(_, values) => kind(values),
        RunEndEncoded(_, values) => kind(values.data_type()),
        _ => ColumnKind::Other,
    }
}

/// The columns of one batch in the order of a plan: label, weights if there are any, features.
pub(crate) struct Batch {
    rows: usize,
    label: Values,
    weights: Option<Box<dyn Numbers>>,
    features: Vec<Values>,
}

enum Values {
    Numbers(Box<dyn Numbers>),
    Levels { codes: Vec<u32>, names: Vec<String> },
}

impl Batch {
    pub(crate) fn new(plan: &Plan, columns: &[ArrayRef]) -> Result<Self> {
        let label_is_text = plan.label_kind == pursuit_udfs::LabelKind::Class;
        let label = Values::of(&columns[0], label_is_text)?;
        let weights = if plan.weighted { Some(numbers(&columns[1])?) } else { None };
        let first = 1 + usize::from(plan.weighted);
        let features = plan.features.iter().zip(&columns[first..]).map(|(feature, column)| Values::of(column, feature.is_text));
        Ok(Self { rows: columns[0].len(), label, weights, features: features.collect::<Result<_>>()? })
    }

    /// Hands the columns over as blocks.
    pub(crate) fn hand_over<T>(&self, receive: impl FnOnce(usize, Block<'_>, Option<&dyn Numbers>, &[Block<'_>]) -> T) -> T {
        let label_names = self.label.names();
        let feature_names: Vec<Vec<&str>> = self.features.iter().map(Values::names).collect();
        let features: Vec<Block<'_>> =
            self.features.iter().zip(&feature_names).map(|(values, names)| values.block(names)).collect();
        receive(self.rows, self.label.block(&label_names), self.weights.as_deref(), &features)
    }
}

/// The columns of one batch as blocks, for those who need neither label nor weights.
pub(crate) fn with_blocks<T>(columns: &[(ArrayRef, bool)], receive: impl FnOnce(&[Block<'_>]) -> T) -> Result<T> {
    let values = columns.iter().map(|(column, is_text)| Values::of(column, *is_text)).collect::<Result<Vec<_>>>()?;
    let names: Vec<Vec<&str>> = values.iter().map(Values::names).collect();
    let blocks: Vec<Block<'_>> = values.iter().zip(&names).map(|(values, names)| values.block(names)).collect();
    Ok(receive(&blocks))
}

impl Values {
    fn of(column: &ArrayRef, is_text: bool) -> Result<Self> {
        if !is_text {
            return numbers(column).map(Values::Numbers);
        }
        let (codes, names) = levels(column)?;
        Ok(Values::Levels { codes, names })
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Values::Levels { names, .. } => names.iter().map(String::as_str).collect(),
            Values::Numbers(_) => Vec::new(),
        }
    }

    fn block<'a>(&'a self, names: &'a [&'a str]) -> Block<'a> {
        match self {
            Values::Numbers(numbers) => Block::Numbers(&**numbers),
            Values::Levels { codes, .. } => Block::Levels { codes, names },
        }
    }
}

/// A column and the conversion of its values: a type of its own for each, so that the loop over them is compiled as one.
struct Primitive<T: ArrowPrimitiveType, F>(PrimitiveArray<T>, F);

impl<T: ArrowPrimitiveType, F: Fn(T::Native) -> f64 + Sync> Numbers for Primitive<T, F> {
    fn fill(&self, start: usize, out: &mut [f64]) {
        let values = &self.0.values()[start..start + out.len()];
        for (out, value) in out.iter_mut().zip(values) {
            *out = (self.1)(*value);
        }
        if let Some(nulls) = self.0.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (row, out) in out.iter_mut().enumerate() {
                if nulls.is_null(start + row) {
                    *out = f64::NAN;
                }
            }
        }
    }

    fn as_slice(&self) -> Option<&[f64]> {
        let is_plain = T::DATA_TYPE == DataType::Float64 && self.0.null_count() == 0;
        is_plain.then(|| self.0.values().inner().typed_data())
    }
}

/// Any column that is a number at heart.
pub(crate) fn numbers(column: &ArrayRef) -> Result<Box<dyn Numbers>> {
    macro_rules! primitive {
        ($type:ty, $convert:expr) => {
            Box::new(Primitive(column.as_primitive::<$type>().clone(), $convert))
        };
    }
    Ok(match column.data_type() {
        DataType::Float64 => primitive!(Float64Type, |x| x),
        DataType::Float32 => primitive!(Float32Type, f64::from),
        DataType::Int8 => primitive!(Int8Type, f64::from),
        DataType::Int16 => primitive!(Int16Type, f64::from),
        DataType::Int32 => primitive!(Int32Type, f64::from),
        DataType::Int64 => primitive!(Int64Type, |x| x as f64),
        DataType::UInt8 => primitive!(UInt8Type, f64::from),
        DataType::UInt16 => primitive!(UInt16Type, f64::from),
        DataType::UInt32 => primitive!(UInt32Type, f64::from),
        DataType::UInt64 => primitive!(UInt64Type, |x| x as f64),
        // The rest is rarer: Arrow makes it one of the above first. Times are whole numbers of their unit.
        DataType::Date32 | DataType::Time32(_) => numbers(&cast(column, &DataType::Int32)?)?,
        DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_) => {
            numbers(&cast(column, &DataType::Int64)?)?
        }
        DataType::Dictionary(_, values) => numbers(&cast(column, values)?)?,
        DataType::RunEndEncoded(_, values) => numbers(&cast(column, values.data_type())?)?,
        _ => numbers(&cast(column, &DataType::Float64)?)?,
    })
}

/// The names of a dictionary that occur, in the order of their first row. A dictionary may have a name several times, as filters and joins leave it that put
/// batches together, and NULLs among its names; and most of its names may be of rows that are gone.
fn dictionary_levels(column: &ArrayRef) -> Result<(Vec<u32>, Vec<String>)> {
    let dictionary = column.as_any_dictionary();
    let values = cast(dictionary.values(), &DataType::Utf8View)?;
    let values = values.as_string_view();
    if values.is_empty() {
        return Ok((vec![NO_LEVEL; column.len()], Vec::new()));
    }
    let mut level_of = vec![None; values.len()];
    let (mut known, mut names) = (HashMap::new(), Vec::new());
    let mut level = |key: usize| {
        *level_of[key].get_or_insert_with(|| {
            if values.is_null(key) {
                return NO_LEVEL;
            }
            *known.entry(values.value(key)).or_insert_with(|| {
                names.push(values.value(key).to_string());
                names.len() as u32 - 1
            })
        })
    };
    let keys = dictionary.normalized_keys();
    let codes = keys.into_iter().enumerate().map(|(row, key)| if column.is_null(row) { NO_LEVEL } else { level(key) }).collect();
    Ok((codes, names))
}

/// A column of text, or of booleans, as codes into a list of distinct names.
pub(crate) fn levels(column: &ArrayRef) -> Result<(Vec<u32>, Vec<String>)> {
    if let DataType::Dictionary(_, values) = column.data_type()
        && kind(values) == ColumnKind::Text
    {
        return dictionary_levels(column);
    }
    if let Some(booleans) = column.as_boolean_opt() {
        let (mut known, mut names) = ([NO_LEVEL; 2], Vec::new());
        let mut code = |value: bool| {
            let known = &mut known[usize::from(value)];
            if *known == NO_LEVEL {
                *known = names.len() as u32;
                names.push(value.to_string());
            }
            *known
        };
        let codes = booleans.iter().map(|value| value.map_or(NO_LEVEL, &mut code)).collect();
        return Ok((codes, names));
    }
    let text = match column.data_type() {
        DataType::Utf8View => Arc::clone(column),
        _ => cast(column, &DataType::Utf8View)?,
    };
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::new();
    let codes = text
        .as_string_view()
        .iter()
        .map(|value| {
            let Some(value) = value else { return NO_LEVEL };
            *known.entry(value).or_insert_with(|| {
                names.push(value.to_string());
                names.len() as u32 - 1
            })
        })
        .collect();
    Ok((codes, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BooleanArray, Decimal128Array, DictionaryArray, Float16Array, Float32Array, Float64Array, Int64Array, StringArray,
    };

    fn read(column: ArrayRef) -> Vec<f64> {
        let mut out = vec![0.0; column.len()];
        numbers(&column).unwrap().fill(0, &mut out);
        out
    }

    #[test]
    fn whole_columns_of_doubles_are_not_copied() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(numbers(&column.slice(1, 2)).unwrap().as_slice(), Some(&[2.0, 3.0][..]));
        let others: [ArrayRef; 2] = [Arc::new(Float64Array::from(vec![None, Some(1.0)])), Arc::new(Int64Array::from(vec![1]))];
        assert!(others.iter().all(|column| numbers(column).unwrap().as_slice().is_none()));
    }

    #[test]
    fn every_number_arrives_as_itself() {
        assert_eq!(read(Arc::new(Int64Array::from(vec![-3, 7]))), [-3.0, 7.0]);
        assert_eq!(read(Arc::new(Float32Array::from(vec![0.5]))), [0.5]);
        assert_eq!(read(Arc::new(BooleanArray::from(vec![true, false]))), [1.0, 0.0]);
        assert_eq!(read(Arc::new(Float16Array::from_iter_values([half(1.5)]))), [1.5]);
        assert_eq!(read(Arc::new(Decimal128Array::from(vec![12345]).with_precision_and_scale(10, 2).unwrap())), [123.45]);
        let days = cast(&(Arc::new(Int64Array::from(vec![86_400_000])) as ArrayRef), &DataType::Date64).unwrap();
        assert_eq!(read(days), [86_400_000.0]);
        let holes = read(Arc::new(Int64Array::from(vec![None, Some(1)])));
        assert!(holes[0].is_nan() && holes[1] == 1.0);
    }

    fn half(x: f32) -> <Float16Type as ArrowPrimitiveType>::Native {
        <Float16Type as ArrowPrimitiveType>::Native::from_f32(x)
    }

    #[test]
    fn text_of_any_encoding_has_the_same_levels() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]));
        for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let (codes, names) = levels(&cast(&plain, &data_type).unwrap()).unwrap();
            assert_eq!((codes, names), (vec![0, NO_LEVEL, 1, 0], vec!["b".to_string(), "a".into()]));
        }
        let dictionary: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        let (codes, names) = levels(&(Arc::new(dictionary) as ArrayRef)).unwrap();
        assert_eq!((codes, names), (vec![0, NO_LEVEL, 1, 0], vec!["b".to_string(), "a".into()]));
    }

    /// Random dictionaries: names twice, NULLs among the names, names that no row has, any type of key, any slice.
    #[test]
    fn every_dictionary_has_the_levels_of_its_texts() {
        let mut random = pursuit_udfs::Run::new(5).random("dictionaries", 0);
        for round in 0..300 {
            let words = ["a", "b", "c", "", "ab"];
            let names = 1 + random.below(8);
            let values: StringArray =
                (0..names).map(|_| (random.below(5) > 0).then(|| words[random.below(words.len())])).collect();
            let rows = random.below(20);
            let keys: Vec<Option<i8>> = (0..rows).map(|_| (random.below(6) > 0).then(|| random.below(names) as i8)).collect();
            let plain: Vec<Option<&str>> = keys
                .iter()
                .map(|key| key.map(|key| key as usize).filter(|key| values.is_valid(*key)).map(|key| values.value(key)))
                .collect();
            let narrow: ArrayRef =
                Arc::new(DictionaryArray::<Int8Type>::try_new(PrimitiveArray::from(keys), Arc::new(values.clone())).unwrap());
            let wide = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::LargeUtf8));
            let column = if round % 2 == 0 { narrow } else { cast(&narrow, &wide).unwrap() };
            let start = random.below(rows + 1);
            let (column, plain) = (column.slice(start, rows - start), &plain[start..]);
            let expected = levels(&(Arc::new(StringArray::from(plain.to_vec())) as ArrayRef)).unwrap();
            assert_eq!(levels(&column).unwrap(), expected, "round {round}");
        }
    }
}
