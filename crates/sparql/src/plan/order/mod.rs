//! Join ordering: the items of a group, then its optional groups.
//!
//! [`choose`] asks [`order_cache`] for the order that was found for a join like this one; else
//! [`join_order`] searches by what is [estimated](super::estimate), and [`sampling`] looks whether
//! it is so.

mod choose;
pub(super) mod join_order;
mod optional_order;
pub(super) mod order_cache;
pub(super) mod sampling;
