//! The tables and columns of `pg_catalog` that clients use.

/// The schemas that are made here.
pub(crate) const SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];

/// Tables of the catalog and their columns; see `cells` for the letters.
pub(super) const TABLES: &[(&str, &str)] = &[
    ("pg_am", "oid i amname t amhandler t amtype t"),
    ("pg_attrdef", "oid i adrelid i adnum i adbin t"),
    (
        "pg_attribute",
        "attrelid i attname t atttypid i attstattarget i attlen i attnum i attndims i atttypmod i attnotnull b atthasdef b atthasmissing b \
         attidentity t attgenerated t attisdropped b attislocal b attinhcount i attcollation i attacl T attoptions T attfdwoptions T attcompression t \
         attmissingval t attstorage t attalign t attbyval b",
    ),
    (
        "pg_auth_members",
        "roleid i member i grantor i admin_option b",
    ),
    (
        "pg_cast",
        "oid i castsource i casttarget i castfunc i castcontext t castmethod t",
    ),
    (
        "pg_class",
        "oid i relname t relnamespace i reltype i reloftype i relowner i relam i relfilenode i reltablespace i relpages i reltuples i \
         relallvisible i reltoastrelid i relhasindex b relisshared b relpersistence t relkind t relnatts i relchecks i relhasrules b relhastriggers b \
         relhassubclass b relrowsecurity b relforcerowsecurity b relispopulated b relreplident t relispartition b relrewrite i relacl T reloptions T \
         relpartbound t relfrozenxid i tableoid i",
    ),
    (
        "pg_collation",
        "oid i collname t collnamespace i collowner i collprovider t collisdeterministic b collencoding i collcollate t collctype t colliculocale t collversion t",
    ),
    (
        "pg_constraint",
        "oid i conname t connamespace i contype t condeferrable b condeferred b convalidated b conrelid i contypid i conindid i conparentid i \
         confrelid i confupdtype t confdeltype t confmatchtype t conislocal b coninhcount i connoinherit b conkey I confkey I conexclop I conbin t tableoid i",
    ),
    (
        "pg_database",
        "oid i datname t datdba i encoding i datlocprovider t datistemplate b datallowconn b datconnlimit i dattablespace i datcollate t datctype t \
         daticulocale t datcollversion t datacl T datfrozenxid i datminmxid i",
    ),
    ("pg_db_role_setting", "setdatabase i setrole i setconfig T"),
    (
        "pg_default_acl",
        "oid i defaclrole i defaclnamespace i defaclobjtype t defaclacl T",
    ),
    (
        "pg_depend",
        "classid i objid i objsubid i refclassid i refobjid i refobjsubid i deptype t",
    ),
    (
        "pg_description",
        "objoid i classoid i objsubid i description t",
    ),
    ("pg_enum", "oid i enumtypid i enumsortorder i enumlabel t"),
    (
        "pg_event_trigger",
        "oid i evtname t evtevent t evtowner i evtfoid i evtenabled t evttags T",
    ),
    (
        "pg_extension",
        "oid i extname t extowner i extnamespace i extrelocatable b extversion t extconfig I extcondition T",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid i fdwname t fdwowner i fdwhandler i fdwvalidator i fdwacl T fdwoptions T",
    ),
    (
        "pg_foreign_server",
        "oid i srvname t srvowner i srvfdw i srvtype t srvversion t srvacl T srvoptions T",
    ),
    ("pg_foreign_table", "ftrelid i ftserver i ftoptions T"),
    (
        "pg_index",
        "indexrelid i indrelid i indnatts i indnkeyatts i indisunique b indnullsnotdistinct b indisprimary b indisexclusion b indimmediate b \
         indisclustered b indisvalid b indcheckxmin b indisready b indislive b indisreplident b indkey V indcollation V indclass V indoption V \
         indexprs t indpred t",
    ),
    (
        "pg_indexes",
        "schemaname t tablename t indexname t tablespace t indexdef t",
    ),
    (
        "pg_inherits",
        "inhrelid i inhparent i inhseqno i inhdetachpending b",
    ),
    (
        "pg_language",
        "oid i lanname t lanowner i lanispl b lanpltrusted b lanplcallfoid i laninline i lanvalidator i lanacl T",
    ),
    (
        "pg_matviews",
        "schemaname t matviewname t matviewowner t tablespace t hasindexes b ispopulated b definition t",
    ),
    ("pg_namespace", "oid i nspname t nspowner i nspacl T"),
    (
        "pg_opclass",
        "oid i opcmethod i opcname t opcnamespace i opcowner i opcdefault b opcfamily i opcintype i opckeytype i",
    ),
    (
        "pg_partitioned_table",
        "partrelid i partstrat t partnatts i partdefid i partattrs I",
    ),
    (
        "pg_policy",
        "oid i polname t polrelid i polcmd t polpermissive b polroles I polqual t polwithcheck t",
    ),
    (
        "pg_proc",
        "oid i proname t pronamespace i proowner i prolang i prokind t proretset b prorettype i proargtypes V proargnames T proargmodes T \
         proallargtypes I prosrc t provolatile t pronargs i procost i prorows i provariadic i prosupport t prosecdef b proleakproof b \
         proisstrict b proparallel t pronargdefaults i proargdefaults t probin t proconfig T proacl T",
    ),
    (
        "pg_publication",
        "oid i pubname t pubowner i puballtables b pubinsert b pubupdate b pubdelete b pubtruncate b",
    ),
    ("pg_publication_namespace", "oid i pnpubid i pnnspid i"),
    (
        "pg_publication_rel",
        "oid i prpubid i prrelid i prqual t prattrs I",
    ),
    ("pg_range", "rngtypid i rngsubtype i"),
    (
        "pg_rewrite",
        "oid i rulename t ev_class i ev_type t ev_enabled t is_instead b ev_qual t ev_action t",
    ),
    (
        "pg_roles",
        "oid i rolname t rolsuper b rolinherit b rolcreaterole b rolcreatedb b rolcanlogin b rolreplication b rolconnlimit i rolpassword t \
         rolvaliduntil t rolbypassrls b rolconfig T",
    ),
    (
        "pg_sequence",
        "seqrelid i seqtypid i seqstart i seqincrement i seqmax i seqmin i seqcache i seqcycle b",
    ),
    (
        "pg_sequences",
        "schemaname t sequencename t sequenceowner t data_type t start_value i min_value i max_value i increment_by i cycle b cache_size i last_value i",
    ),
    (
        "pg_settings",
        "name t setting t unit t category t short_desc t extra_desc t context t vartype t source t min_val t max_val t enumvals t boot_val t \
         reset_val t sourcefile t sourceline i pending_restart b",
    ),
    ("pg_shdescription", "objoid i classoid i description t"),
    (
        "pg_statistic_ext",
        "oid i stxrelid i stxname t stxnamespace i stxowner i stxstattarget i stxkeys I stxkind T",
    ),
    (
        "pg_tables",
        "schemaname t tablename t tableowner t tablespace t hasindexes b hasrules b hastriggers b rowsecurity b",
    ),
    (
        "pg_tablespace",
        "oid i spcname t spcowner i spcacl T spcoptions T",
    ),
    (
        "pg_trigger",
        "oid i tgrelid i tgparentid i tgname t tgfoid i tgtype i tgenabled t tgisinternal b tgconstrrelid i tgconstrindid i tgconstraint i \
         tgdeferrable b tginitdeferred b tgnargs i tgattr V tgargs t tgqual t tgoldtable t tgnewtable t",
    ),
    (
        "pg_type",
        "oid i typname t typnamespace i typowner i typlen i typbyval b typtype t typcategory t typispreferred b typisdefined b typdelim t typrelid i \
         typelem i typarray i typinput t typoutput t typbasetype i typtypmod i typndims i typnotnull b typcollation i typdefault t typacl T typsubscript t typreceive t typsend t typmodin t typmodout t typanalyze t \
         typalign t typstorage t typdefaultbin t",
    ),
    (
        "pg_user",
        "usename t usesysid i usecreatedb b usesuper b userepl b usebypassrls b passwd t valuntil t useconfig T",
    ),
    (
        "pg_views",
        "schemaname t viewname t viewowner t definition t",
    ),
];

/// Those that have rows; there is none of what the others list.
const MADE: [&str; 19] = [
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_depend",
    "pg_index",
    "pg_indexes",
    "pg_language",
    "pg_namespace",
    "pg_roles",
    "pg_settings",
    "pg_tables",
    "pg_tablespace",
    "pg_type",
    "pg_user",
    "pg_views",
];

/// The standard's tables; DataFusion's own say Arrow's types.
const STANDARD: &[(&str, &str)] = &[
    (
        "columns",
        "table_catalog t table_schema t table_name t column_name t ordinal_position i column_default t is_nullable t data_type t \
         character_maximum_length i numeric_precision i numeric_precision_radix i numeric_scale i datetime_precision i udt_catalog t udt_schema t \
         udt_name t is_identity t is_generated t is_updatable t",
    ),
    (
        "key_column_usage",
        "constraint_catalog t constraint_schema t constraint_name t table_catalog t table_schema t table_name t column_name t ordinal_position i \
         position_in_unique_constraint i",
    ),
    (
        "referential_constraints",
        "constraint_catalog t constraint_schema t constraint_name t unique_constraint_catalog t unique_constraint_schema t unique_constraint_name t \
         match_option t update_rule t delete_rule t",
    ),
    (
        "schemata",
        "catalog_name t schema_name t schema_owner t default_character_set_catalog t default_character_set_schema t default_character_set_name t sql_path t",
    ),
    (
        "table_constraints",
        "constraint_catalog t constraint_schema t constraint_name t table_catalog t table_schema t table_name t constraint_type t is_deferrable t \
         initially_deferred t",
    ),
    (
        "tables",
        "table_catalog t table_schema t table_name t table_type t is_insertable_into t is_typed t",
    ),
    (
        "views",
        "table_catalog t table_schema t table_name t view_definition t check_option t is_updatable t is_insertable_into t",
    ),
];

/// Whether a table of the catalog never has rows, for there is none of what it lists.
pub(super) fn is_always_empty(name: &[String]) -> bool {
    let name = match name {
        [name] => name,
        [schema, name] if schema == SCHEMAS[0] => name,
        _ => return false,
    };
    has(SCHEMAS[0], name) && !MADE.contains(&name.as_str())
}

/// Whether there is such a table.
pub(super) fn has(schema: &str, name: &str) -> bool {
    columns_of(schema, name).is_some()
}

/// The place of a table among those of its schema.
pub(super) fn place_of(schema: &str, name: &str) -> Option<i64> {
    let place = list(schema).iter().position(|(it, _)| *it == name)?;
    i64::try_from(place).ok()
}

fn list(schema: &str) -> &'static [(&'static str, &'static str)] {
    match schema {
        "pg_catalog" => TABLES,
        "information_schema" => STANDARD,
        _ => &[],
    }
}

pub(super) fn columns_of(schema: &str, name: &str) -> Option<&'static str> {
    let found = list(schema).iter().find(|(it, _)| *it == name);
    found.map(|(_, columns)| *columns)
}
