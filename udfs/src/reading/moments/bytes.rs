//! Moments as bytes, to be stored, sent and merged later: the plan as text, which grams of one call share, and the rest as numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Column, Moments, Written, triangle};
use crate::kernels::double::Double;
use crate::reading::levels::{BUCKETS_MAX, Distinct, SMALLEST};
use crate::reading::plan::{Class, Plan};
use crate::reading::table::Seen;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"pursuit3";

impl Moments {
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = self.plan.text();
        let mut bytes =
            Vec::with_capacity(64 + text.len() + 16 * (self.columns.len() + self.totals.len()) + 8 * self.seen.missing.len());
        bytes.extend_from_slice(MAGIC);
        write_bytes(&mut bytes, text);
        bytes.push(u8::from(self.places.classes.is_some()));
        write_size(&mut bytes, self.columns.len());
        self.columns.iter().for_each(|column| write_column(&mut bytes, column));
        write_size(&mut bytes, self.origins.len());
        for origin in &self.origins {
            bytes.push(u8::from(origin.is_some()));
            bytes.extend_from_slice(&origin.unwrap_or(0.0).to_le_bytes());
        }
        let seen = &self.seen;
        let counts = [seen.rows, seen.rows_without_label, seen.rows_without_weight, seen.rows_with_null, seen.out_of_range];
        counts.iter().chain(&seen.missing).for_each(|count| bytes.extend_from_slice(&count.to_le_bytes()));
        write_size(&mut bytes, self.buckets);
        for distinct in &self.hashed {
            bytes.push(u8::from(distinct.is_some()));
            if let Some(distinct) = distinct {
                write_size(&mut bytes, distinct.hashes().len());
                distinct.hashes().for_each(|hash| bytes.extend_from_slice(&hash.to_le_bytes()));
            }
        }
        for total in &self.totals {
            bytes.extend_from_slice(&total.high.to_le_bytes());
            bytes.extend_from_slice(&total.low.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes, None).ok_or_else(not_a_gram)
    }

    /// The same, and quicker where the bytes are of the same call as this one.
    pub fn from_bytes_like(&self, bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes, Some(&self.plan)).ok_or_else(not_a_gram)
    }

    fn parse(bytes: &[u8], like: Option<&Arc<Written>>) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let text = read_bytes(&mut rest)?;
        let plan = match like.filter(|like| like.text() == text) {
            Some(like) => Arc::clone(like),
            None => {
                let plan: Plan = serde_json::from_slice(text).ok()?;
                Arc::new(Written { plan: Arc::new(plan), text: OnceLock::from(text.to_vec()) })
            }
        };
        let counts_classes = read_flag(&mut rest)?;
        // No more of anything than there are bytes, or a wrong number would take all memory.
        let columns = read_size(&mut rest).filter(|columns| *columns <= rest.len())?;
        let columns = (0..columns).map(|_| read_column(&mut rest)).collect::<Option<Vec<_>>>()?;
        let origins = read_size(&mut rest).filter(|origins| *origins <= columns.len())?;
        let origin = |rest: &mut &[u8]| Some((read_flag(rest)?, f64::from_bits(read_u64(rest)?)));
        let origins =
            (0..origins).map(|_| origin(&mut rest).map(|(is_known, at)| is_known.then_some(at))).collect::<Option<Vec<_>>>()?;
        let features = plan.plan.features.len();
        let mut count = || read_u64(&mut rest);
        let (rows, rows_without_label, rows_without_weight, rows_with_null) = (count()?, count()?, count()?, count()?);
        let out_of_range = count()?;
        let missing = (0..features).map(|_| count()).collect::<Option<Vec<_>>>()?;
        let texts = BTreeMap::new();
        let seen = Seen {
            rows,
            rows_without_label,
            rows_without_weight,
            rows_with_null,
            missing,
            out_of_range,
            texts,
            ..Seen::default()
        };
        let buckets = read_size(&mut rest).filter(|buckets| (1..=BUCKETS_MAX).contains(buckets))?;
        let hashed = (0..features).map(|_| read_distinct(&mut rest)).collect::<Option<Vec<_>>>()?;
        let is_text = |feature: &usize| plan.plan.features.get(*feature).is_some_and(|feature| feature.is_text);
        let in_range = |column: &Column| match column {
            Column::Number(feature) => *feature < features && !is_text(feature),
            Column::Null(feature) => *feature < features,
            Column::Level(feature, _) => is_text(feature) && hashed[*feature].is_none(),
            Column::Bucket(feature, bucket) => is_text(feature) && hashed[*feature].is_some() && (*bucket as usize) < buckets,
            Column::Others(_) => false,
            Column::One | Column::Label | Column::Class(_) => true,
        };
        if columns.first() != Some(&Column::One)
            || !columns.iter().all(in_range)
            || plan.plan.keeps_number() != columns.contains(&Column::Label)
        {
            return None;
        }
        let mut moments = Self::with_columns(plan, columns, seen, counts_classes);
        (moments.origins, moments.buckets, moments.hashed) = (origins, buckets, hashed);
        let (numbers, rest) = rest.as_chunks::<16>();
        let total = |pair: &[u8; 16]| {
            let (high, low) = pair.split_at(8);
            let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("half of sixteen bytes"));
            Double { high: number(high), low: number(low) }
        };
        moments.totals = numbers.iter().map(total).collect();
        let complete = moments.totals.is_empty() || moments.totals.len() == triangle(moments.columns.len());
        (rest.is_empty() && complete).then_some(moments)
    }
}

impl Written {
    fn text(&self) -> &[u8] {
        self.text.get_or_init(|| serde_json::to_vec(&*self.plan).expect("a plan of numbers and names is valid JSON"))
    }
}

fn not_a_gram() -> Error {
    Error::call("this value is not a gram, or of another version; make it again with gram(…)")
}

fn write_size(bytes: &mut Vec<u8>, size: usize) {
    bytes.extend_from_slice(&(size as u64).to_le_bytes());
}

fn write_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    write_size(bytes, text.len());
    bytes.extend_from_slice(text);
}

/// What a column is, and of what.
fn write_column(bytes: &mut Vec<u8>, column: &Column) {
    match column {
        Column::One => bytes.push(0),
        Column::Label => bytes.push(1),
        Column::Class(Class::Whole(value)) => {
            bytes.push(2);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        Column::Class(Class::Text(text)) => {
            bytes.push(3);
            write_bytes(bytes, text.as_bytes());
        }
        Column::Number(feature) => {
            bytes.push(4);
            write_size(bytes, *feature);
        }
        Column::Null(feature) => {
            bytes.push(5);
            write_size(bytes, *feature);
        }
        Column::Level(feature, level) => {
            bytes.push(6);
            write_size(bytes, *feature);
            write_bytes(bytes, level.as_bytes());
        }
        Column::Bucket(feature, bucket) => {
            bytes.push(7);
            write_size(bytes, *feature);
            write_size(bytes, *bucket as usize);
        }
        Column::Others(_) => unreachable!("only what is finished has others"),
    }
}

fn read_column(rest: &mut &[u8]) -> Option<Column> {
    let text = |rest: &mut &[u8]| String::from_utf8(read_bytes(rest)?.to_vec()).ok();
    let (kind, after) = rest.split_first()?;
    *rest = after;
    Some(match kind {
        0 => Column::One,
        1 => Column::Label,
        2 => Column::Class(Class::Whole(read_u64(rest)? as i64)),
        3 => Column::Class(Class::Text(text(rest)?)),
        4 => Column::Number(read_size(rest)?),
        5 => Column::Null(read_size(rest)?),
        6 => Column::Level(read_size(rest)?, text(rest)?),
        7 => Column::Bucket(read_size(rest)?, u32::try_from(read_size(rest)?).ok()?),
        _ => return None,
    })
}

fn read_u64(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn read_size(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_u64(rest)?).ok()
}

fn read_flag(rest: &mut &[u8]) -> Option<bool> {
    let (flag, after) = rest.split_first()?;
    *rest = after;
    (*flag < 2).then_some(*flag == 1)
}

/// The outer `None` is no such thing.
fn read_distinct(rest: &mut &[u8]) -> Option<Option<Distinct>> {
    if !read_flag(rest)? {
        return Some(None);
    }
    let hashes = read_size(rest).filter(|hashes| *hashes <= SMALLEST)?;
    let mut distinct = Distinct::default();
    for _ in 0..hashes {
        distinct.insert(read_u64(rest)?);
    }
    Some(Some(distinct))
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_size(rest)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}
