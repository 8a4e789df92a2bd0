//! The builder of plan nodes from groups: [`group`] plans [`items`], then the steps on top.
//!
//! Joins, those by place, what is nearest, optional groups, `EXISTS`, aggregates, modifiers and
//! `SERVICE` have a file each; unions, paths and computed columns are in [`operators`].
//! [`reference`] is the plan without rewrites, with which a test compares all others.

mod aggregate;
mod exists;
mod group;
mod items;
mod join;
mod lateral;
mod mapped;
mod modifiers;
mod nearest;
mod operators;
mod optional;
mod places;
mod reference;
mod search;
mod service;
mod weights;
