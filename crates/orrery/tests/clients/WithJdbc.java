import java.math.BigDecimal;
import java.sql.*;
import java.util.*;

/** PostgreSQL's JDBC driver against a server whose address (host:port) is the first argument, and the user's password, if one is needed, the second. */
public class WithJdbc {
    static void check(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new AssertionError(found + " where " + expected + " was expected");
    }

    static List<String> column(ResultSet rows, String... names) throws SQLException {
        List<String> all = new ArrayList<>();
        while (rows.next()) {
            StringJoiner row = new StringJoiner(" ");
            for (String name : names) row.add(String.valueOf(rows.getString(name)));
            all.add(row.toString());
        }
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://" + arguments[0] + "/orrery?user=tester";
        Properties more = new Properties();
        if (arguments.length > 1) more.setProperty("password", arguments[1]);
        try (Connection connection = DriverManager.getConnection(url, more)) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("create table maker (id int primary key, name varchar(40) not null unique)");
                statement.execute("create table item (id bigint primary key, maker int references maker, price numeric(10,2), made timestamp)");
                statement.execute("create view dear as select id, price from item where price > 10");
            }
            rows(connection);
            portions(connection);
            System.out.println("rows");
            tables(connection.getMetaData());
            System.out.println("tables");
        }
    }

    static void rows(Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into maker values (?, ?)")) {
            for (int i = 0; i < 10; i++) {
                insert.setInt(1, i);
                insert.setString(2, "maker " + i);
                insert.addBatch();
            }
            check(insert.executeBatch().length, 10);
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into item values (?, ?, ?, ?)")) {
            insert.setLong(1, 1L << 40);
            insert.setInt(2, 3);
            insert.setBigDecimal(3, new BigDecimal("12.50"));
            insert.setTimestamp(4, Timestamp.valueOf("2026-01-02 03:04:05.5"));
            check(insert.executeUpdate(), 1);
        }
        // The driver prepares it on the server, and asks for binary values, after five times.
        try (PreparedStatement select = connection.prepareStatement("select i.price, i.made, m.name from item i join maker m on m.id = i.maker where i.id = ?")) {
            for (int i = 0; i < 10; i++) {
                select.setLong(1, 1L << 40);
                ResultSet found = select.executeQuery();
                check(found.next(), true);
                check(found.getBigDecimal(1), new BigDecimal("12.50"));
                check(found.getTimestamp(2), Timestamp.valueOf("2026-01-02 03:04:05.5"));
                check(found.getString(3), "maker 3");
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("insert into maker values (3, 'again')");
            throw new AssertionError("a key is there twice");
        } catch (SQLException error) {
            check(error.getSQLState(), "23505");
        }
    }

    static void portions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(3);
            ResultSet all = statement.executeQuery("select id from maker order by id");
            for (int i = 0; i < 10; i++) {
                check(all.next(), true);
                check(all.getInt(1), i);
            }
            check(all.next(), false);
        }
        connection.rollback();
        connection.setAutoCommit(true);
    }

    static void tables(DatabaseMetaData data) throws SQLException {
        check(column(data.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME").containsAll(List.of("item", "maker")), true);
        check(column(data.getTables(null, "public", "%", null), "TABLE_NAME", "TABLE_TYPE").contains("dear VIEW"), true);
        check(column(data.getSchemas(), "TABLE_SCHEM").contains("public"), true);
        check(
            column(data.getColumns(null, "public", "item", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "IS_NULLABLE"),
            List.of("id int8 19 NO", "maker int4 10 YES", "price numeric 10 YES", "made timestamp 29 YES"));
        check(column(data.getPrimaryKeys(null, "public", "item"), "COLUMN_NAME", "KEY_SEQ"), List.of("id 1"));
        check(
            column(data.getImportedKeys(null, "public", "item"), "FKCOLUMN_NAME", "PKTABLE_NAME", "PKCOLUMN_NAME", "KEY_SEQ"),
            List.of("maker maker id 1"));
        check(column(data.getIndexInfo(null, "public", "maker", true, true), "COLUMN_NAME").contains("name"), true);
    }
}
