//! The `server` list of an exchange.

use std::{ops, slice};

use super::Item;

/// What the server sent because of a client message, in order: a slice of [`Item`]s.
///
/// Nearly every exchange has one item. It stands in the exchange itself: a cassette of many small ones would need
/// half as much memory again for lists that stand elsewhere, and as many more looks at memory that is not at hand.
#[derive(Clone, Debug)]
pub struct Items(List);

#[derive(Clone, Debug)]
enum List {
    One(Item),
    /// None, or several.
    Others(Box<[Item]>),
}

impl Default for Items {
    fn default() -> Self {
        Self(List::Others(Box::default()))
    }
}

impl From<Vec<Item>> for Items {
    fn from(mut items: Vec<Item>) -> Self {
        match items.pop() {
            Some(item) if items.is_empty() => Self::from(item),
            last => {
                items.extend(last);
                Self(List::Others(items.into()))
            }
        }
    }
}

impl From<Item> for Items {
    fn from(item: Item) -> Self {
        Self(List::One(item))
    }
}

impl ops::Deref for Items {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        match &self.0 {
            List::One(item) => slice::from_ref(item),
            List::Others(items) => items,
        }
    }
}

impl ops::DerefMut for Items {
    fn deref_mut(&mut self) -> &mut [Item] {
        match &mut self.0 {
            List::One(item) => slice::from_mut(item),
            List::Others(items) => items,
        }
    }
}

impl<'a> IntoIterator for &'a Items {
    type Item = &'a Item;
    type IntoIter = slice::Iter<'a, Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::{blob::NoBlobs, model::Cassette};

    #[test]
    fn one_item_takes_no_more_room_than_an_item() {
        assert_eq!(size_of::<Items>(), size_of::<Item>());
    }

    #[test]
    fn a_list_has_its_items_in_order_however_many() {
        for count in 0..4 {
            let items: Vec<_> =
                (0..count).map(|n| format!(r#"{{"after_ms": {n}, "result": {{}}}}"#)).collect();
            let text = format!(
                r#"{{"cassette": 1, "exchanges": [{{"key": "a", "client": {{"request": {{"method": "m"}}}}, "server": [{}]}}]}}"#,
                items.join(", ")
            );
            let mut cassette = Cassette::load(text.into(), &NoBlobs).unwrap();
            let items = &mut cassette.exchanges[0].server;
            items.iter_mut().for_each(|item| item.after_ms += 1);
            assert!(items.iter().map(|item| item.after_ms).eq(1..=count));
        }
    }
}
