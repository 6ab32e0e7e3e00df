//! Comparison across ranks: the outlier against the majority.

use std::collections::BTreeMap;

/// A fact that is not the same on all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlier {
    /// What most say.
    pub majority: String,
    /// Who says it.
    pub majority_count: usize,
    /// What others say: value and indexes of the sayers.
    pub others: Vec<(String, Vec<usize>)>,
}

/// Splits `values` (sayer, value) into majority and outliers; `None` if all agree. A tie goes to the smaller value.
pub fn outliers(values: &[(usize, String)]) -> Option<Outlier> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (who, value) in values {
        groups.entry(value).or_default().push(*who);
    }
    if groups.len() < 2 {
        return None;
    }
    let most = groups.values().map(Vec::len).max()?;
    let majority = (*groups.iter().find(|(_, who)| who.len() == most)?.0).to_owned();
    let others = groups.into_iter().filter(|(v, _)| *v != majority).map(|(v, who)| (v.to_owned(), who)).collect();
    Some(Outlier { majority, majority_count: most, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_differs() {
        let values: Vec<(usize, String)> = [(0, "a"), (1, "a"), (2, "b")].into_iter().map(|(i, v)| (i, v.to_owned())).collect();
        let outlier = outliers(&values).unwrap();
        assert_eq!((outlier.majority.as_str(), outlier.majority_count), ("a", 2));
        assert_eq!(outlier.others, vec![("b".to_owned(), vec![2])]);
        assert_eq!(outliers(&values[..2]), None);
    }
}
