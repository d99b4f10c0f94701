//! The methods of a script's steps: few, so each is kept once and known by a number.

use std::{collections::HashMap, sync::Arc};

/// Methods by their numbers. The first one is the empty one, that of a message that has none.
#[derive(Debug)]
pub(super) struct Methods {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// The number that was asked for last.
    last: u32,
}

impl Default for Methods {
    fn default() -> Self {
        let mut methods = Self { names: Vec::new(), numbers: HashMap::new(), last: Self::NONE };
        methods.add("");
        methods
    }
}

impl Methods {
    /// The number of the empty method.
    pub(super) const NONE: u32 = 0;

    /// The number of a method, which is taken in where it is new.
    pub(super) fn number(&mut self, method: &str) -> u32 {
        // Often many calls stand one behind the other.
        if *self.names[self.last as usize] != *method {
            self.last = self.find(method).unwrap_or_else(|| self.add(method));
        }
        self.last
    }

    /// The number of a method that may not be known.
    pub(super) fn find(&self, method: &str) -> Option<u32> {
        self.numbers.get(method).copied()
    }

    /// The method of this number.
    pub(super) fn get(&self, number: u32) -> &Arc<str> {
        &self.names[number as usize]
    }

    fn add(&mut self, method: &str) -> u32 {
        let (method, number) = (Arc::from(method), self.names.len() as u32);
        self.names.push(Arc::clone(&method));
        self.numbers.insert(method, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_methods_have_one_number() {
        let mut methods = Methods::default();
        let numbers: Vec<_> =
            ["ping", "x", "ping", "ping", "", "y"].map(|method| methods.number(method)).into();
        assert_eq!(numbers, [1, 2, 1, 1, Methods::NONE, 3]);
        assert_eq!((methods.find("x"), methods.find("z"), &**methods.get(3)), (Some(2), None, "y"));
    }
}
