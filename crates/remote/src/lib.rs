//! Requests to other machines, within an allow-list: SERVICE and LOAD; object stores for backups.
