//! PostgreSQL's type numbers (`pg_type.oid`), and the Arrow types that they stand for.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

pub(crate) const BOOL: u32 = 16;
pub(crate) const BYTEA: u32 = 17;
pub(crate) const CHAR: u32 = 18;
pub(crate) const NAME: u32 = 19;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT2VECTOR: u32 = 22;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const JSON: u32 = 114;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIME: u32 = 1083;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const INTERVAL: u32 = 1186;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const UUID: u32 = 2950;

/// Element types, each with the type of its arrays.
const ARRAYS: &[(u32, u32)] = &[
    (BOOL, 1000),
    (BYTEA, 1001),
    (INT2, 1005),
    (INT4, 1007),
    (TEXT, 1009),
    (INT8, 1016),
    (FLOAT4, 1021),
    (FLOAT8, 1022),
    (TIMESTAMP, 1115),
    (DATE, 1182),
    (TIME, 1183),
    (TIMESTAMPTZ, 1185),
    (INTERVAL, 1187),
    (NUMERIC, 1231),
];

/// The type that clients see for values of an Arrow type.
pub(crate) fn oid_of(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Boolean => BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => INT2,
        DataType::Int32 | DataType::UInt16 => INT4,
        DataType::Int64 | DataType::UInt32 => INT8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => NUMERIC,
        DataType::Float16 | DataType::Float32 => FLOAT4,
        DataType::Float64 => FLOAT8,
        DataType::Date32 | DataType::Date64 => DATE,
        DataType::Time32(_) | DataType::Time64(_) => TIME,
        DataType::Timestamp(_, None) => TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => INTERVAL,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => BYTEA,
        DataType::Dictionary(_, values) => oid_of(values),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _) => {
            let element = oid_of(element.data_type());
            let array = ARRAYS.iter().find(|(of, _)| *of == element);
            array.map_or(TEXT, |(_, array)| *array)
        }
        _ => TEXT,
    }
}

/// The type that clients see for a column.
pub(crate) fn oid_of_column(field: &Field) -> u32 {
    match is_vector(field) {
        true => INT2VECTOR,
        false => oid_of(field.data_type()),
    }
}

/// Whether a column's arrays are written with blanks between their numbers.
pub(crate) fn is_vector(field: &Field) -> bool {
    field.metadata().contains_key(orrery_sql::VECTOR)
        && matches!(field.data_type(), DataType::List(_))
}

/// Bytes of a value, -1 if they vary.
pub(crate) fn size_of(oid: u32) -> i16 {
    match oid {
        BOOL => 1,
        INT2 => 2,
        INT4 | FLOAT4 | DATE => 4,
        INT8 | FLOAT8 | TIME | TIMESTAMP | TIMESTAMPTZ => 8,
        INTERVAL => 16,
        _ => -1,
    }
}

/// The type modifier: the digits of a numeric.
pub(crate) fn modifier_of(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Decimal128(precision, scale) => {
            // PostgreSQL, numeric.c: make_numeric_typmod.
            ((i32::from(*precision) << 16) | i32::from(*scale)) + 4
        }
        _ => -1,
    }
}

/// The Arrow type of a parameter whose type a client has set; none if the client leaves it to us.
pub(crate) fn told(oid: u32) -> Option<Option<DataType>> {
    Some(Some(match oid {
        0 | UNKNOWN => return Some(None),
        BOOL => DataType::Boolean,
        BYTEA => DataType::Binary,
        INT8 | OID => DataType::Int64,
        INT2 => DataType::Int16,
        INT4 => DataType::Int32,
        FLOAT4 => DataType::Float32,
        FLOAT8 => DataType::Float64,
        TEXT | NAME | CHAR | BPCHAR | VARCHAR | JSON | UUID => DataType::Utf8,
        DATE => DataType::Date32,
        TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        TIME => DataType::Time64(TimeUnit::Microsecond),
        INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        // The digits differ from value to value.
        NUMERIC => DataType::Decimal128(38, 10),
        other => {
            let (element, _) = ARRAYS.iter().find(|(_, array)| *array == other)?;
            let element = told(*element)?.unwrap_or(DataType::Utf8);
            DataType::List(Field::new_list_field(element, true).into())
        }
    }))
}

/// The element type of an array type.
pub(crate) fn element_of(oid: u32) -> Option<u32> {
    let found = ARRAYS.iter().find(|(_, array)| *array == oid);
    found.map(|(element, _)| *element)
}
