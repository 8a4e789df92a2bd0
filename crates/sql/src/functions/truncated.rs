//! `date_trunc` of microsecond timestamps, over all their years.
//!
//! DataFusion's counts nanoseconds on the way, which end in the year 2262, and knows no decades.
//! This one takes what has been cast to a timestamp of microseconds (`times`), and is in UTC, as
//! sessions are. Units are PostgreSQL's, a week begins on Monday.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::strict_field::strict_field;
use crate::{Error, SqlState};

const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A call of `date_trunc`, whose arguments are done, as one of ours.
pub(crate) fn truncated(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_ours = func.inner().is::<Truncated>();
    let is_wanted = func.name() == "date_trunc" && args.len() == 2 && !is_ours;
    // What has no type yet, such as a parameter, is left to the engine.
    let of = args.last().filter(|_| is_wanted);
    let zone = match of.map(|of| of.get_type(schema)) {
        Some(Ok(DataType::Timestamp(_, zone))) => zone,
        Some(Ok(
            DataType::Date32
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Null,
        )) => None,
        _ => {
            let unchanged = ScalarFunction { func, args };
            return Ok(Transformed::no(Expr::ScalarFunction(unchanged)));
        }
    };
    if let Some(of) = args.pop() {
        args.push(of.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone), schema)?);
    }
    let function = Truncated {
        signature: Signature::any(2, Volatility::Immutable),
    };
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(function)),
        args,
    })))
}

/// What a time is cut off to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// So many microseconds.
    Even(i64),
    Week,
    /// So many months.
    Months(i64),
    /// So many years, the first of which is the first of the calendar.
    Era(i64),
}

impl Unit {
    fn named(name: &str) -> Result<Self, Error> {
        Ok(match name.to_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" => Self::Even(1),
            "millisecond" | "milliseconds" | "ms" => Self::Even(MILLISECOND),
            "second" | "seconds" => Self::Even(SECOND),
            "minute" | "minutes" => Self::Even(MINUTE),
            "hour" | "hours" => Self::Even(HOUR),
            "day" | "days" => Self::Even(DAY),
            "week" | "weeks" => Self::Week,
            "month" | "months" => Self::Months(1),
            "quarter" | "quarters" => Self::Months(3),
            "year" | "years" => Self::Months(12),
            "decade" | "decades" => Self::Months(120),
            "century" | "centuries" => Self::Era(100),
            "millennium" | "millennia" => Self::Era(1_000),
            _ => {
                return Err(Error::new(
                    SqlState::InvalidParameterValue,
                    format!("unit \"{name}\" not recognized for type timestamp without time zone"),
                ));
            }
        })
    }

    /// A time in microseconds since 1970, cut off; `None` if that is before all times.
    fn of(self, time: i64) -> Option<i64> {
        let days = time.div_euclid(DAY);
        let day_of = |days: i64| days.checked_mul(DAY);
        match self {
            Self::Even(unit) => time.checked_sub(time.rem_euclid(unit)),
            // 1970-01-01 was a Thursday.
            Self::Week => day_of(days - (days + 3).rem_euclid(7)),
            Self::Months(count) => {
                let (year, month) = month_of(days);
                let months = year * 12 + month;
                let months = months - months.rem_euclid(count);
                day_of(first_of(months.div_euclid(12), months.rem_euclid(12)))
            }
            Self::Era(years) => {
                let (year, _) = month_of(days);
                day_of(first_of((year - 1).div_euclid(years) * years + 1, 0))
            }
        }
    }
}

/// The year and the month, from 0 on, of a day since 1970 (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn month_of(day: i64) -> (i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // From March on.
    let month = (5 * day_of_year + 2) / 153;
    let year = era * 400 + year + i64::from(month >= 10);
    (year, (month + 2) % 12)
}

/// The first day of a month, from 0 on, in days since 1970.
fn first_of(year: i64, month: i64) -> i64 {
    let year = if month < 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 10) % 12) + 2) / 5;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncated {
    signature: Signature,
}

impl ScalarUDFImpl for Truncated {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        args.last().cloned().ok_or_else(|| wants_two().into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields.last().ok_or_else(wants_two)?;
        Ok(strict_field(self.name(), of.data_type().clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [units, times] = args.args.as_slice() else {
            return Err(wants_two().into());
        };
        let is_scalar = matches!(
            (units, times),
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))
        );
        let rows = if is_scalar { 1 } else { args.number_rows };
        let times = times.to_array(rows)?;
        // The optimizer asks what comes of NULL in place of columns, of whatever type it makes of
        // `NULL + interval '1 day'`.
        if times.logical_null_count() == times.len() {
            let none = ScalarValue::try_from(args.return_field.data_type())?;
            return Ok(ColumnarValue::Scalar(none));
        }
        let cut = match units {
            ColumnarValue::Scalar(unit) => of_one_unit(&text_of(unit)?, &times)?,
            ColumnarValue::Array(units) => of_each_unit(units, &times)?,
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&cut, 0)?),
            false => ColumnarValue::Array(cut),
        })
    }
}

fn text_of(unit: &ScalarValue) -> Result<Option<String>> {
    match unit.cast_to(&DataType::Utf8)? {
        ScalarValue::Utf8(text) => Ok(text),
        _ => Err(wants_two().into()),
    }
}

fn of_one_unit(unit: &Option<String>, times: &ArrayRef) -> Result<ArrayRef> {
    let Some(unit) = unit else {
        return Ok(datafusion::arrow::array::new_null_array(
            times.data_type(),
            times.len(),
        ));
    };
    let unit = Unit::named(unit)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let cut: PrimitiveArray<TimestampMicrosecondType> =
        times.try_unary(|time| unit.of(time).ok_or_else(too_early))?;
    Ok(Arc::new(cut.with_data_type(times.data_type().clone())))
}

fn of_each_unit(units: &ArrayRef, times: &ArrayRef) -> Result<ArrayRef> {
    let units = cast(units, &DataType::Utf8)?;
    let units = units.as_string::<i32>();
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let pairs = units.iter().zip(times.iter());
    let cut = pairs.map(|pair| match pair {
        (Some(unit), Some(time)) => Unit::named(unit)?.of(time).map(Some).ok_or_else(too_early),
        _ => Ok(None),
    });
    let cut: PrimitiveArray<TimestampMicrosecondType> = cut.collect::<Result<_, Error>>()?;
    Ok(Arc::new(cut.with_data_type(times.data_type().clone())))
}

fn too_early() -> Error {
    Error::new(SqlState::InvalidParameterValue, "timestamp out of range")
}

fn wants_two() -> Error {
    Error::new(
        SqlState::InternalError,
        "date_trunc takes a unit and a time",
    )
}

#[cfg(test)]
mod tests {
    use orrery_storage::{format_time, parse_time};

    use super::*;

    #[test]
    fn times_of_all_years_are_cut_off() {
        for (unit, time, expected) in [
            ("month", "9999-12-31T23:59:59.5Z", "9999-12-01T00:00:00Z"),
            ("day", "1969-12-31T12:30:00Z", "1969-12-31T00:00:00Z"),
            ("Hour", "1000-01-01T12:30:00Z", "1000-01-01T12:00:00Z"),
            ("week", "2026-11-22T01:00:00Z", "2026-11-16T00:00:00Z"),
            ("week", "1969-12-31T01:00:00Z", "1969-12-29T00:00:00Z"),
            ("quarter", "2024-02-29T00:00:00Z", "2024-01-01T00:00:00Z"),
            ("quarter", "2024-12-31T00:00:00Z", "2024-10-01T00:00:00Z"),
            ("year", "1900-03-01T00:00:00Z", "1900-01-01T00:00:00Z"),
            ("decade", "1999-12-31T00:00:00Z", "1990-01-01T00:00:00Z"),
            ("century", "2000-12-31T00:00:00Z", "1901-01-01T00:00:00Z"),
            ("century", "2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
            ("millennium", "2000-02-29T00:00:00Z", "1001-01-01T00:00:00Z"),
            (
                "milliseconds",
                "2024-02-29T00:00:00.123456Z",
                "2024-02-29T00:00:00.123Z",
            ),
        ] {
            let unit = Unit::named(unit).unwrap();
            let cut = unit.of(parse_time(time).unwrap()).unwrap();
            assert_eq!(
                cut,
                parse_time(expected).unwrap(),
                "{unit:?} of {time}: {}",
                format_time(cut)
            );
        }
        assert!(Unit::named("fortnight").is_err());
        assert_eq!(Unit::Week.of(i64::MIN), None);
    }

    #[test]
    fn a_month_begins_where_its_first_day_is() {
        for day in (-1_000_000..4_000_000).step_by(97) {
            let (year, month) = month_of(day);
            let first = first_of(year, month);
            let next = if month == 11 {
                first_of(year + 1, 0)
            } else {
                first_of(year, month + 1)
            };
            assert!((first..next).contains(&day), "{day}");
            assert_eq!(month_of(first), (year, month));
        }
        assert_eq!(month_of(0), (1970, 0));
        assert_eq!(first_of(1970, 0), 0);
    }
}
