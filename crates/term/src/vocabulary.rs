//! The IRIs that the engine itself knows.

/// RDF vocabulary.
pub mod rdf {
    /// `rdf:type`.
    pub const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    /// `rdf:langString`, the datatype of literals with a language tag.
    pub const LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";
    /// `rdf:dirLangString`, the datatype of literals with a language tag and a base direction.
    pub const DIR_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString";
}

/// XML Schema datatypes.
pub mod xsd {
    /// What all of them begin with.
    pub const NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema#";

    macro_rules! datatypes {
        ($($name:ident = $local:literal),* $(,)?) => {
            $(
                #[doc = concat!("`xsd:", $local, "`.")]
                pub const $name: &str = concat!("http://www.w3.org/2001/XMLSchema#", $local);
            )*
        };
    }

    datatypes! {
        STRING = "string",
        BOOLEAN = "boolean",
        INTEGER = "integer",
        DECIMAL = "decimal",
        FLOAT = "float",
        DOUBLE = "double",
        DATE = "date",
        TIME = "time",
        DATE_TIME = "dateTime",
        DATE_TIME_STAMP = "dateTimeStamp",
        G_YEAR = "gYear",
        G_YEAR_MONTH = "gYearMonth",
        G_MONTH = "gMonth",
        G_MONTH_DAY = "gMonthDay",
        G_DAY = "gDay",
        DURATION = "duration",
        YEAR_MONTH_DURATION = "yearMonthDuration",
        DAY_TIME_DURATION = "dayTimeDuration",
        INT = "int",
        LONG = "long",
        SHORT = "short",
        BYTE = "byte",
        NON_NEGATIVE_INTEGER = "nonNegativeInteger",
        POSITIVE_INTEGER = "positiveInteger",
        NON_POSITIVE_INTEGER = "nonPositiveInteger",
        NEGATIVE_INTEGER = "negativeInteger",
        UNSIGNED_LONG = "unsignedLong",
        UNSIGNED_INT = "unsignedInt",
        UNSIGNED_SHORT = "unsignedShort",
        UNSIGNED_BYTE = "unsignedByte",
        ANY_URI = "anyURI",
    }
}
