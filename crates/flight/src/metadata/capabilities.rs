//! The capabilities that `GetSqlInfo` reports.

use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
};

use crate::options::FlightOptions;

/// Describes the server's SQL dialect, features and limits.
pub(crate) fn capabilities(is_read_only: bool, options: &FlightOptions) -> Result<SqlInfoData> {
    let milliseconds =
        |time: std::time::Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    let mut told = SqlInfoDataBuilder::new();
    told.append(SqlInfo::FlightSqlServerName, "Orrery");
    told.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    told.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    told.append(SqlInfo::FlightSqlServerReadOnly, is_read_only);
    told.append(SqlInfo::FlightSqlServerSql, true);
    told.append(SqlInfo::FlightSqlServerSubstrait, false);
    told.append(
        SqlInfo::FlightSqlServerTransaction,
        SqlSupportedTransaction::Savepoint as i32,
    );
    told.append(SqlInfo::FlightSqlServerCancel, true);
    told.append(SqlInfo::FlightSqlServerBulkIngestion, !is_read_only);
    told.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, true);
    told.append(
        SqlInfo::FlightSqlServerStatementTimeout,
        milliseconds(options.statement_time_default),
    );
    told.append(
        SqlInfo::FlightSqlServerTransactionTimeout,
        milliseconds(options.idle_max),
    );
    told.append(SqlInfo::SqlDdlCatalog, false);
    told.append(SqlInfo::SqlDdlSchema, !is_read_only);
    told.append(SqlInfo::SqlDdlTable, !is_read_only);
    told.append(
        SqlInfo::SqlIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32,
    );
    told.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    told.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    told.append(SqlInfo::SqlAllTablesAreSelectable, true);
    told.append(
        SqlInfo::SqlNullOrdering,
        SqlNullOrdering::SqlNullsSortedHigh as i32,
    );
    told.append(SqlInfo::SqlTransactionsSupported, true);
    told.build()
}
