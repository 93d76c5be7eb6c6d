//! A set of small numbers, one bit each. Numbers beyond its end are not in it.

use smallvec::SmallVec;

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: SmallVec<[u64; 8]>,
}

impl Bits {
    pub fn contains(&self, n: u32) -> bool {
        self.words.get(n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    pub fn insert(&mut self, n: u32) {
        let at = n as usize / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (n % 64);
    }

    pub fn remove(&mut self, n: u32) {
        if let Some(word) = self.words.get_mut(n as usize / 64) {
            *word &= !(1 << (n % 64));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Everything that is in one of them.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Bits>) -> Bits {
        let mut sum = Bits::default();
        sets.into_iter().for_each(|set| sum.add(set));
        sum
    }

    /// Adds everything that is in `other`.
    pub fn add(&mut self, other: &Bits) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Keeps only what is in `other` too.
    pub fn keep(&mut self, other: &Bits) {
        self.words.truncate(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(ours, theirs)| *ours &= theirs);
    }

    /// Takes out everything that is in `other`.
    pub fn drop_all(&mut self, other: &Bits) {
        self.words.iter_mut().zip(&other.words).for_each(|(ours, theirs)| *ours &= !theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u32]) -> Bits {
        let mut bits = Bits::default();
        numbers.iter().for_each(|n| bits.insert(*n));
        bits
    }

    fn numbers(bits: &Bits) -> Vec<u32> {
        (0..2_000).filter(|n| bits.contains(*n)).collect()
    }

    #[test]
    fn sets_of_different_lengths_combine() {
        let (short, long) = (of(&[1, 63, 64]), of(&[1, 64, 1_000]));
        assert_eq!(numbers(&Bits::union([&short, &long])), [1, 63, 64, 1_000]);
        let kept = |mut a: Bits, b: &Bits| {
            a.keep(b);
            numbers(&a)
        };
        assert_eq!(kept(short.clone(), &long), [1, 64]);
        assert_eq!(kept(long.clone(), &short), [1, 64]);
        let mut rest = long.clone();
        rest.drop_all(&short);
        assert_eq!(numbers(&rest), [1_000]);
        rest.remove(1_000);
        rest.remove(5_000);
        assert!(rest.is_empty() && Bits::default().is_empty());
    }
}
